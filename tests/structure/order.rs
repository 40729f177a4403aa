//! The order of modules and crates that ARCHITECTURE.md draws, and what goes against it.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::Modules;

/// Names from the bottom up. What stands between commas is side by side: none of it uses another.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Order(Vec<Vec<String>>);

impl Order {
    fn read(text: &str) -> Self {
        let names = |level: &str| level.split(',').map(|name| name.trim().to_owned()).collect();
        Self(text.split('<').map(names).collect())
    }

    pub(crate) fn level(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|level| level.iter().any(|known| known == name))
    }

    pub(crate) fn names(&self) -> BTreeSet<&str> {
        self.0.iter().flatten().map(String::as_str).collect()
    }

    /// What is wrong with the modules of a crate, by this order.
    pub(crate) fn faults(&self, modules: &Modules) -> Vec<String> {
        let mut faults = Vec::new();
        for name in &modules.names {
            if self.level(name).is_none() {
                faults.push(format!("`{name}` is missing in the order"));
            }
        }
        for name in self.names() {
            if !modules.names.contains(name) {
                faults.push(format!("there is no module `{name}`, which the order has"));
            }
        }
        for found in &modules.uses {
            let (from, to) = (self.level(&found.from), self.level(&found.to));
            if let (Some(from), Some(to)) = (from, to)
                && to >= from
            {
                let (file, line) = (found.file.display(), found.line);
                faults.push(format!(
                    "{file}:{line}: `{}` uses `{}`, against the order",
                    found.from, found.to
                ));
            }
        }
        faults.extend(cycle(modules).map(|names| format!("a cycle: {}", names.join(" → "))));
        faults
    }
}

/// A cycle of modules, if there is one.
fn cycle(modules: &Modules) -> Option<Vec<&str>> {
    fn visit<'a>(
        name: &'a str,
        uses: &BTreeMap<&'a str, BTreeSet<&'a str>>,
        way: &mut Vec<&'a str>,
        done: &mut BTreeSet<&'a str>,
    ) -> bool {
        if let Some(first) = way.iter().position(|before| *before == name) {
            way.drain(..first);
            way.push(name);
            return true;
        }
        if !done.contains(name) {
            way.push(name);
            if uses.get(name).into_iter().flatten().any(|next| visit(next, uses, way, done)) {
                return true;
            }
            way.pop();
            done.insert(name);
        }
        false
    }
    let mut uses: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for found in &modules.uses {
        uses.entry(&found.from).or_default().insert(&found.to);
    }
    let (mut way, mut done) = (Vec::new(), BTreeSet::new());
    modules.names.iter().any(|name| visit(name, &uses, &mut way, &mut done)).then_some(way)
}

/// The orders of a section of ARCHITECTURE.md: in its indented lines, `NAME: a < b, c < d`, each as
/// long as it likes.
pub(crate) fn drawn(document: &str, heading: &str) -> BTreeMap<String, Order> {
    let section =
        document.split(&format!("\n## {heading}\n")).nth(1).expect("the section is there");
    let section = section.split("\n## ").next().unwrap_or_default();
    let mut lines: Vec<(String, String)> = Vec::new();
    for line in section.lines().filter(|line| line.starts_with("    ")) {
        match line.split_once(':') {
            Some((name, order)) => lines.push((name.trim().to_owned(), order.to_owned())),
            None => lines.last_mut().expect("a name comes first").1.push_str(line),
        }
    }
    lines.into_iter().map(|(name, order)| (name, Order::read(&order))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::modules::of_files;
    use super::*;

    fn modules(files: &[(&str, &str)]) -> Modules {
        let files: Vec<_> =
            files.iter().map(|(path, text)| (path.into(), (*text).to_owned())).collect();
        of_files(&files)
    }

    #[test]
    fn orders_are_read_from_indented_lines_of_their_section() {
        let document = "# A\n\n    x: y < z\n\n## Order\n\nText: a < b.\n\n    one: a < b, c\n         < d\n    two: e\n\n## Other\n\n    f: g\n";
        let drawn = drawn(document, "Order");
        assert_eq!(drawn.keys().collect::<Vec<_>>(), ["one", "two"]);
        let one = &drawn["one"];
        assert_eq!(
            ["a", "b", "c", "d", "e"].map(|name| one.level(name)),
            [Some(0), Some(1), Some(1), Some(2), None]
        );
    }

    #[test]
    fn what_goes_against_the_order_is_named_with_its_line() {
        let order = Order::read("a < b, c < d");
        let right = [
            ("a.rs", ""),
            ("b.rs", "use crate::a;"),
            ("c.rs", ""),
            ("d/x.rs", "use crate::{a, c};"),
        ];
        assert_eq!(order.faults(&modules(&right)), [""; 0]);
        let wrong = |at: usize, text: &'static str| {
            let mut files = right;
            files[at].1 = text;
            order.faults(&modules(&files))
        };
        let faults = wrong(0, "\n#[cfg(test)]\nmod tests {\n    use crate::d::X;\n}");
        assert_eq!(faults, ["a.rs:4: `a` uses `d`, against the order", "a cycle: a → d → a"]);
        let faults = wrong(2, "/// [`X`](super::b)\nfn f() {}");
        assert_eq!(faults, ["c.rs:1: `c` uses `b`, against the order"]);
    }

    #[test]
    fn the_order_has_all_modules_and_no_others() {
        let found = modules(&[("a.rs", ""), ("new.rs", "")]);
        assert_eq!(
            Order::read("a < gone").faults(&found),
            ["`new` is missing in the order", "there is no module `gone`, which the order has"]
        );
    }

    #[test]
    fn cycles_are_found_also_where_nothing_is_drawn() {
        let files = [
            ("a.rs", "use crate::b;"),
            ("b.rs", "use crate::c;"),
            ("c.rs", "use crate::b;"),
            ("d.rs", ""),
        ];
        assert_eq!(cycle(&modules(&files)), Some(vec!["b", "c", "b"]));
        assert_eq!(cycle(&modules(&files[1..2])), None);
    }
}
