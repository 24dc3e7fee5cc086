"""Writes dtrun_abi.rs, the plugin ABI for Rust, and dtrun.rs, the calls of programs, from the C headers; the build installs
them beside those.

    rust_ffi.py FOLDER
    rust_ffi.py --check    compiles them with rustc, where there is one, and runs the assertions

Sizes and offsets are those of sdk/tests/abi_layout.inc, which C and C++ assert. rustc asserts the sizes again in every crate that
includes the file; --check asserts the offsets too.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SDK = pathlib.Path(__file__).resolve().parent
HEADERS = ["base", "error", "types", "op", "options", "host", "backend", "launcher", "plugin", "device", "services"]
PROGRAM = ["dtrun", "failure", "device"]
PLAIN = {"uint8_t": "u8", "uint32_t": "u32", "uint64_t": "u64", "int32_t": "i32", "int64_t": "i64", "double": "f64",
         "char": "c_char", "void": "c_void"}

HEAD = """\
// dtrun_abi.rs - the plugin ABI of dtrun for Rust, generated from dtrun/abi/*.h by sdk/rust_ffi.py.
// The headers say what everything means, who owns it and which threads may call it.
//
//   #[allow(non_camel_case_types, dead_code)]
//   mod abi {
//       include!(concat!(env!("DTRUN_INCLUDE"), "/dtrun/dtrun_abi.rs"));
//   }
//
// Needs Rust 1.63 and edition 2021. `T::default()` is what DTRUN_INIT makes: zero, with struct_size.

use std::os::raw::{c_char, c_void};
"""

PROGRAM_HEAD = """\
// dtrun.rs - what a program calls, for Rust: generated from dtrun/dtrun.h, failure.h and device.h by sdk/rust_ffi.py.
// The headers say what everything means, who owns it and which threads may call it.
//
// Goes after dtrun_abi.rs, into the same module. Link libdtrun: rustc -L FOLDER -l dtrun.
"""

TAIL = """
/// What of a caller's error its struct_size covers is filled; `error` may be null. Returns `code`.
///
/// # Safety
/// `error` is null or points to a dtrun_error with its struct_size set.
pub unsafe fn dtrun_error_set(error: *mut dtrun_error, code: dtrun_status, peer: i32, text: &str) -> dtrun_status {
    if error.is_null() {
        return code;
    }
    let size = (*error).struct_size as usize;
    let mut filled = dtrun_error { struct_size: size as u32, code, peer, ..Default::default() };
    let before = std::ptr::addr_of!(filled.message) as usize - std::ptr::addr_of!(filled) as usize;
    let room = size.saturating_sub(before).min(filled.message.len());
    let mut bytes = text.len().min(room.saturating_sub(1));
    while !text.is_char_boundary(bytes) {
        bytes -= 1;
    }
    for (to, from) in filled.message.iter_mut().zip(&text.as_bytes()[..bytes]) {
        *to = *from as c_char;
    }
    let whole = size.min(std::mem::size_of::<dtrun_error>());
    std::ptr::copy_nonoverlapping(&filled as *const _ as *const u8, error as *mut u8, whole);
    code
}
"""


def rust_type(text):
    """`const char* const*` -> `*const *const c_char`."""
    words = re.findall(r"\w+|\*", text.replace("struct ", ""))
    constant = words[0] == "const"
    words = words[1:] if constant else words
    result = PLAIN.get(words[0], words[0])
    for word in words[1:]:
        if word == "*":
            result = ("*const " if constant else "*mut ") + result
            constant = False
        else:
            constant = True  # of the pointer so far
    return result


def function(result, parameters):
    """The type of a pointer to such a function."""
    types = [] if parameters.strip() == "void" else [rust_type(re.match(r"(.*?)\w+$", one.strip(), re.S)[1])
                                                     for one in parameters.split(",")]
    returns = "" if result == "void" else f" -> {rust_type(result)}"
    return f'Option<unsafe extern "C" fn({", ".join(types)}){returns}>'


def member(declaration):
    pointer = re.fullmatch(r"(.*?)\s*\(\*(\w+)\)\((.*)\)", declaration)
    if pointer:
        return pointer[2], function(pointer[1], pointer[3])
    plain = re.fullmatch(r"(.*?)(\w+)\s*(?:\[(\w+)\])?", declaration)
    kind = rust_type(plain[1])
    return plain[2], f"[{kind}; {plain[3]} as usize]" if plain[3] else kind


def structs(text):
    for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\n\} \1;", text, flags=re.S):
        members = [member(" ".join(one.split())) for one in body.split(";") if one.strip()]
        lines = [f"    pub {known if known != 'type' else 'r#type'}: {kind}," for known, kind in members]
        yield name, "\n#[repr(C)]\n#[derive(Clone, Copy)]\npub struct %s {\n%s\n}\n" % (name, "\n".join(lines))


def default(name):
    peer = "\n        value.peer = -1;" if name == "dtrun_error" else ""
    return (f"impl Default for {name} {{\n    fn default() -> Self {{\n"
            f"        let mut value: Self = unsafe {{ std::mem::zeroed() }};\n"
            f"        value.struct_size = std::mem::size_of::<Self>() as u32;{peer}\n        value\n    }}\n}}\n")


def constants(text):
    for body in re.findall(r"enum \{(.*?)\};", text, flags=re.S):
        for name, value in re.findall(r"(DTRUN_\w+)\s*=\s*([^,}]+)", body):
            yield f"pub const {name}: i32 = {value.strip()};\n"
    for name, value in re.findall(r'^#define (DTRUN_\w+) ("[^"]*"|0x\w+|UINT64_C\(\w+\)|\d\w*)(?:\s|$)', text, flags=re.M):
        if value.startswith('"'):
            text = f'b{value[:-1]}\\0"'
            yield f"pub const {name}: &std::ffi::CStr = unsafe {{ std::ffi::CStr::from_bytes_with_nul_unchecked({text}) }};\n"
        elif value.startswith("UINT64_C"):
            yield f"pub const {name}: u64 = {value[9:-1]};\n"
        else:
            yield f"pub const {name}: u32 = {value.rstrip('u')};\n"


LAYOUT = "".join((SDK / "tests" / part).read_text() for part in ("abi_layout.inc", "device_layout.inc"))


def sizes():
    for name, size in re.findall(r"^DTRUN_SIZE\((\w+), (\d+)\)", LAYOUT, re.M):
        yield f"    assert!(std::mem::size_of::<{name}>() == {size});\n"


def offsets():
    """A program that asserts them: rustc cannot before 1.77."""
    for name, at, offset in re.findall(r"^DTRUN_MEMBER\((\w+), (\w+), (\d+), \d+\)", LAYOUT, re.M):
        known = "r#type" if at == "type" else at
        yield (f"    let value = std::mem::MaybeUninit::<{name}>::uninit();\n"
               f"    let member = unsafe {{ std::ptr::addr_of!((*value.as_ptr()).{known}) }} as usize;\n"
               f'    assert_eq!(member - value.as_ptr() as usize, {offset}, "{name}.{at}");\n')


def read(headers):
    text = "".join((SDK / f"include/dtrun/{header}.h").read_text() for header in headers)
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def opaque(text):
    return set(re.findall(r"typedef struct (\w+) \1;", text)) - {name for name, _ in structs(text)}


def types(text, opaque_ones):
    out = "".join(sorted(set(constants(text)), key=list(constants(text)).index))
    for name in sorted(opaque_ones):
        out += f"\n#[repr(C)]\npub struct {name} {{\n    private: [u8; 0],\n}}\n"
    for name, struct in structs(text):
        out += struct + (default(name) if "struct_size:" in struct else "")
    return out


def calls(text):
    for returned, name, given in re.findall(r"^DTRUN_API ([^;(]*?)(\w+)\(([^)]*)\);", text, re.M):
        pairs = [re.match(r"(.*?)(\w+)$", " ".join(one.split())) for one in given.split(",") if given != "void"]
        result = "" if returned.strip() == "void" else f" -> {rust_type(returned)}"
        yield f"    pub fn {name}({', '.join(f'{pair[2]}: {rust_type(pair[1])}' for pair in pairs)}){result};\n"


def generate():
    text, program = read(f"abi/{header}" for header in HEADERS), read(PROGRAM)
    abi = HEAD + "\npub type dtrun_status = i32;\n" + types(text, opaque(text)) + TAIL
    abi += "\nconst _: () = {\n" + "".join(sizes()) + "};\n"
    known = opaque(text) | {name for name, _ in structs(text)}
    return abi, PROGRAM_HEAD + types(program, opaque(program) - known) + '\nextern "C" {\n' + "".join(calls(program)) + "}\n"


def main(folder):
    if folder != "--check":
        for name, text in zip(("dtrun_abi.rs", "dtrun.rs"), generate()):
            pathlib.Path(folder, name).write_text(text)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        crate = pathlib.Path(folder, "crate.rs")
        crate.write_text(f"#![allow(non_camel_case_types, dead_code)]\n{''.join(generate())}\nfn main() {{\n{''.join(offsets())}}}\n")
        if shutil.which("rustc") is None:
            print("rustc is not installed; the file was generated and not compiled")
            return 0
        built = subprocess.run(["rustc", "--edition=2021", "-Dwarnings", "--out-dir", folder, crate], check=False).returncode
        return built or subprocess.run([crate.with_suffix("")], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
