//! Prepares the files that are compiled into the program: lists the explorer's files, and takes the
//! Swagger UI files for the page at `/docs` from the archive inside a crate. Packs the latter with
//! gzip, the form that nearly every browser requests. Needs no network.

use std::env;
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Cursor};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use utoipa_swagger_ui_vendored::SWAGGER_UI_VENDORED;
use zip::ZipArchive;

/// Each packed file, and the files of the archive that it is concatenated from. Their paths leave
/// out the top folder.
const FILES: [(&str, &[&str]); 4] = [
    ("swagger-ui.css", &["dist/swagger-ui.css"]),
    ("swagger-ui-bundle.js", &["dist/swagger-ui-bundle.js"]),
    ("favicon.png", &["dist/favicon-32x32.png"]),
    ("license.txt", &["NOTICE", "LICENSE"]),
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    explorer(&out)?;
    let mut archive = ZipArchive::new(Cursor::new(SWAGGER_UI_VENDORED))?;
    for (name, parts) in FILES {
        let mut packed =
            GzEncoder::new(File::create(out.join(format!("{name}.gz")))?, Compression::best());
        for part in parts {
            // The archive's top folder has the version in its name, so ignore it.
            let index = (0..archive.len())
                .find(|&index| {
                    let path = archive.name_for_index(index).and_then(Result::ok);
                    path.and_then(|path| Some(path.split_once('/')?.1 == *part)) == Some(true)
                })
                .ok_or_else(|| format!("no {part} in Swagger UI's archive"))?;
            io::copy(&mut archive.by_index(index)?, &mut packed)?;
        }
        packed.finish()?;
    }
    Ok(())
}

/// Writes the declaration of `FILES`: the names and contents of the explorer's files.
fn explorer(out: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=explorer");
    let mut paths = Vec::new();
    for entry in fs::read_dir("explorer")? {
        paths.push(entry?.path().canonicalize()?);
    }
    paths.sort();
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let lines = paths.iter().map(|path| {
        format!("    ({:?}, include_bytes!({path:?})),\n", name(path).unwrap_or_default())
    });
    let lines: String = lines.collect();
    let list = format!("const FILES: &[(&str, &[u8])] = &[\n{lines}];\n");
    Ok(fs::write(out.join("explorer.rs"), list)?)
}
