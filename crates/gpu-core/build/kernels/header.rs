//! Writes the declarations for the two compilers: `abi/NAME.cuh` for nvcc, `abi/NAME.rs` for rustc.

use std::fmt::Write;
use std::fs;

use super::describe::{Interface, Record};
use super::out_dir;

/// Writes a header for each interface, and assertions that the library has the same layouts.
pub(super) fn write(interfaces: &[Interface]) {
    for interface in interfaces {
        let path = out_dir().join("abi").join(format!("{}.cuh", interface.name));
        fs::create_dir_all(path.parent().expect("a folder")).expect("OUT_DIR can be written");
        let layouts = assertions(&interface.records).expect("memory");
        fs::write(path.with_extension("rs"), layouts).expect("OUT_DIR can be written");
        fs::write(path, header(interface).expect("memory")).expect("OUT_DIR can be written");
    }
}

fn header(interface: &Interface) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let name = interface.name;
    writeln!(text, "// Written by the build script from the abi.rs of {name}.")?;
    writeln!(text, "#pragma once\n#include <cstddef>\n#include <cstdint>\n")?;
    for used in &interface.uses {
        writeln!(text, "#include \"abi/{used}.cuh\"")?;
    }
    for constant in &interface.constants {
        comment(&mut text, "", constant.doc)?;
        writeln!(text, "constexpr {} {} = {};", constant.c_type, constant.name, constant.value)?;
    }
    for each in &interface.enums {
        writeln!(text)?;
        comment(&mut text, "", each.doc)?;
        writeln!(text, "enum class {} : int {{", each.name)?;
        for (doc, name, value) in &each.variants {
            comment(&mut text, "    ", doc)?;
            writeln!(text, "    {name} = {value},")?;
        }
        writeln!(text, "}};")?;
    }
    for record in &interface.records {
        writeln!(text)?;
        comment(&mut text, "", record.doc)?;
        structure(&mut text, record)?;
    }
    writeln!(text)?;
    // Parameters are not `__grid_constant__`: with it, nvcc 13 moves conditions out of fewer loops
    // and spills registers. No kernel keeps the address of its parameters, so they are read in
    // place either way.
    for kernel in interface.files.iter().flat_map(|file| &file.kernels) {
        let bounds: Vec<String> = kernel.bounds.iter().map(u32::to_string).collect();
        writeln!(
            text,
            "extern \"C\" __global__ void __launch_bounds__({}) {}(const {} params);",
            bounds.join(", "),
            kernel.name,
            kernel.params
        )?;
    }
    Ok(text)
}

fn structure(text: &mut String, record: &Record) -> std::fmt::Result {
    let Record { keyword, name, size, align, fields, .. } = record;
    writeln!(text, "{keyword} {name} {{")?;
    for field in fields {
        comment(text, "    ", field.doc)?;
        writeln!(text, "    {} {};", field.c_type, field.name)?;
    }
    writeln!(text, "}};")?;
    let same = "\"the same in Rust\"";
    writeln!(text, "static_assert(sizeof({name}) == {size}, {same});")?;
    writeln!(text, "static_assert(alignof({name}) == {align}, {same});")?;
    for field in fields {
        let (field, offset) = (field.name, field.offset);
        writeln!(text, "static_assert(offsetof({name}, {field}) == {offset}, {same});")?;
    }
    Ok(())
}

fn comment(text: &mut String, indent: &str, doc: &[&str]) -> std::fmt::Result {
    doc.iter().try_for_each(|line| writeln!(text, "{indent}//{line}"))
}

/// An expression, for the module that has the structures.
fn assertions(records: &[Record]) -> Result<String, std::fmt::Error> {
    let mut text = String::from("{\n");
    for Record { name, size, align, fields, .. } in records {
        writeln!(text, "    assert!(size_of::<{name}>() == {size});")?;
        writeln!(text, "    assert!(align_of::<{name}>() == {align});")?;
        for field in fields {
            let (field, offset) = (field.name, field.offset);
            writeln!(text, "    assert!(std::mem::offset_of!({name}, {field}) == {offset});")?;
        }
    }
    text.push_str("}\n");
    Ok(text)
}
