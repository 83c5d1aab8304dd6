//! Gives the shared library its soname: what programs that were linked with `-lviarpc` look for.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libviarpc.so");
}
