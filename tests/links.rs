//! Every link of every Markdown file leads somewhere: files and images exist and lie in the
//! repository, anchors are headings of the file they name. Addresses on the web are not asked, only
//! held to `https`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use percent_encoding::percent_decode_str;
use pulldown_cmark::{BrokenLink, Event, LinkType, Options, Parser, Tag, TagEnd};

/// Folders that are made by tools and not part of the repository.
const NOT_OURS: [&str; 4] = ["target", "staged", "node_modules", "corpus"];

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the top")
}

/// All Markdown files below a folder, as paths from the top.
fn markdown_files(top: &Path, below: &Path, found: &mut BTreeMap<PathBuf, Document>) {
    for entry in fs::read_dir(top.join(below)).expect("the folder can be listed") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("UTF-8");
        let path = below.join(&name);
        let kind = entry.file_type().expect("a type");
        if kind.is_dir() && !name.starts_with('.') && !NOT_OURS.contains(&&name[..]) {
            markdown_files(top, &path, found);
        } else if kind.is_file() && name.ends_with(".md") {
            let text = fs::read_to_string(entry.path()).expect("Markdown is UTF-8");
            found.insert(path, read(&text));
        }
    }
}

/// What matters of a Markdown file here.
#[derive(Debug, Default, PartialEq)]
struct Document {
    /// Where links and images lead.
    links: Vec<String>,
    /// What can be linked to behind a `#`.
    anchors: BTreeSet<String>,
    /// `[text][label]` whose label is nowhere.
    labels_without_address: Vec<String>,
}

fn read(text: &str) -> Document {
    let mut document = Document::default();
    let mut unknown = Vec::new();
    let broken = |link: BrokenLink<'_>| {
        if link.link_type == LinkType::Reference {
            unknown.push(link.reference.to_string());
        }
        None
    };
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_GFM;
    let mut heading: Option<String> = None;
    let mut headings: BTreeMap<String, usize> = BTreeMap::new();
    for event in Parser::new_with_broken_link_callback(text, options, Some(broken)) {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                document.links.push(dest_url.into_string());
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                document
                    .links
                    .extend(["src=\"", "href=\""].into_iter().flat_map(|a| values(&html, a)));
                document
                    .anchors
                    .extend(["id=\"", "name=\""].into_iter().flat_map(|a| values(&html, a)));
            }
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(part) | Event::Code(part) => {
                heading.iter_mut().for_each(|heading| heading.push_str(&part));
            }
            Event::End(TagEnd::Heading(_)) => {
                let slug = slug(&heading.take().expect("it began"));
                let before = headings.entry(slug.clone()).or_insert(0);
                let anchor = if *before == 0 { slug } else { format!("{slug}-{before}") };
                *before += 1;
                document.anchors.insert(anchor);
            }
            _ => {}
        }
    }
    document.labels_without_address = unknown;
    document
}

/// The values of an attribute in HTML.
fn values(html: &str, attribute: &str) -> Vec<String> {
    let attribute = format!(" {attribute}");
    html.split(&attribute)
        .skip(1)
        .filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()))
        .collect()
}

/// What GitHub calls a heading: lower case, hyphens for spaces, no punctuation.
fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// What is wrong with a link of a document.
fn fault(
    top: &Path,
    documents: &BTreeMap<PathBuf, Document>,
    from: &Path,
    link: &str,
) -> Option<&'static str> {
    if link.starts_with("https://") || link.starts_with("mailto:") {
        return None;
    }
    if link.contains("://") {
        return Some("is not https");
    }
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, at)| (path, Some(at)));
    let Ok(path) = percent_decode_str(path).decode_utf8() else { return Some("is not UTF-8") };
    if path.starts_with('/') {
        return Some("is an absolute path");
    }
    let mut target = PathBuf::new();
    let folder = from.parent().unwrap_or(Path::new(""));
    let parts = if path.is_empty() { from.to_owned() } else { folder.join(&*path) };
    for part in parts.components() {
        match part {
            Component::ParentDir if !target.pop() => return Some("leads out of the repository"),
            Component::Normal(part) => target.push(part),
            _ => {}
        }
    }
    if !top.join(&target).exists() {
        return Some("does not exist");
    }
    let anchor = anchor?;
    let Some(document) = documents.get(&target) else { return Some("has no anchors") };
    let known = document.anchors.contains(anchor);
    (!known).then_some("has no such heading")
}

#[test]
fn every_link_leads_somewhere() {
    let top = top();
    let mut documents = BTreeMap::new();
    markdown_files(&top, Path::new(""), &mut documents);
    let mut wrong = Vec::new();
    let mut checked = 0;
    for (path, document) in &documents {
        for link in &document.links {
            checked += 1;
            if let Some(fault) = fault(&top, &documents, path, link) {
                wrong.push(format!("{}: {link} {fault}", path.display()));
            }
        }
        for label in &document.labels_without_address {
            wrong.push(format!("{}: [{label}] has no address", path.display()));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(documents.contains_key(Path::new("README.md")) && checked >= 80, "{checked} links");
}

#[test]
fn headings_are_called_as_github_calls_them() {
    let document = read(
        "# What `k` is, and *why*\n\n## 3CosAdd / 3CosMul\n\n# Keep_it-so\n\n# Über é!\n\n# Keep_it-so\n",
    );
    let expected =
        ["what-k-is-and-why", "3cosadd--3cosmul", "keep_it-so", "über-é", "keep_it-so-1"];
    assert_eq!(document.anchors, expected.map(str::to_owned).into());
}

#[test]
fn links_of_every_form_are_found() {
    let document = read(
        "[a](a.md) ![b](b.png) [c][d] [e][nowhere] `[x](y)` [not a link]\n\n\
         <img src=\"f.svg\" alt=\"\"> <a id=\"here\"></a>\n\n```\n[code](z)\n```\n\n| [g](g.md) |\n|-|\n\n[d]: d.md\n",
    );
    assert_eq!(document.links, ["a.md", "b.png", "d.md", "f.svg", "g.md"]);
    assert_eq!(document.labels_without_address, ["nowhere"]);
    assert!(document.anchors.contains("here"));
}

#[test]
fn wrong_links_are_told_apart() {
    let top = top();
    let documents: BTreeMap<PathBuf, Document> =
        [("docs/formats.md", "# Here\n"), ("README.md", "# Top\n")]
            .map(|(n, t)| (n.into(), read(t)))
            .into();
    let fault = |link| fault(&top, &documents, Path::new("docs/formats.md"), link);
    for right in ["https://example.org", "#here", "../README.md#top", "../Cargo.toml", "../crates"]
    {
        assert_eq!(fault(right), None, "{right}");
    }
    for (wrong, why) in [
        ("http://example.org", "is not https"),
        ("#nowhere", "has no such heading"),
        ("../README.md#here", "has no such heading"),
        ("../Cargo.toml#here", "has no anchors"),
        ("none.md", "does not exist"),
        ("../../outside", "leads out of the repository"),
        ("/etc/passwd", "is an absolute path"),
        ("../README.m%64", ""),
    ] {
        assert_eq!(fault(wrong), Some(why).filter(|why| !why.is_empty()), "{wrong}");
    }
}

#[test]
fn the_index_has_every_document() {
    let mut documents = BTreeMap::new();
    markdown_files(&top(), Path::new("docs"), &mut documents);
    let index = &documents[Path::new("docs/README.md")];
    for path in documents.keys().filter(|path| !path.ends_with("README.md")) {
        let name = path.strip_prefix("docs").expect("below it").to_str().expect("UTF-8");
        assert!(index.links.iter().any(|link| link == name), "docs/README.md lacks {name}");
    }
}
