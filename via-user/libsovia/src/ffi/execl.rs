//! `execl` and its like, whose arguments are a list in the call: it is put together, and the function of the
//! same kind that has an array does the rest.
//!
//! Rust has no functions of as many arguments as the caller has. Where the processor is another one the
//! C library's own are called, and a connection that is on VIA is lost to the new program.
#![expect(unsafe_code, reason = "exported names, and arguments as the processor passes them")]
#![cfg(target_arch = "x86_64")]

use core::arch::naked_asm;
use core::ffi::{c_char, c_int};

use super::environment::{self, Strings};
use super::process;

/// Functions with a list as their second argument, by ones with an array.
///
/// In System V's convention the path is in rdi, the next five arguments are in registers, and the others on
/// the stack, above the address to return to. With that taken away the registers are pushed onto the
/// others: an array. The stack is a multiple of 16 at each call: 8 less at the entry, 8 - 40 - 8 behind it.
macro_rules! lists {
    ($($name:ident by $array:ident;)*) => {$(
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        extern "C" fn $name() {
            naked_asm!(
                "pop r10",
                "push r9",
                "push r8",
                "push rcx",
                "push rdx",
                "push rsi",
                "mov rsi, rsp",
                "push r10",
                "call {array}",
                "pop r10",
                "add rsp, 40",
                "jmp r10",
                array = sym $array,
            );
        }
    )*};
}
lists! {
    execl by by_path;
    execle by with_environment;
    execlp by by_name;
}

extern "C" fn by_path(path: *const c_char, arguments: Strings) -> c_int {
    process::execve(path, arguments, environment::own())
}

/// The environment follows the end of the list.
extern "C" fn with_environment(path: *const c_char, arguments: Strings) -> c_int {
    let behind = arguments.wrapping_add(environment::entries(arguments).len() + 1);
    // SAFETY: the program promises it.
    let environment = unsafe { *behind.cast::<Strings>() };
    process::execve(path, arguments, environment)
}

extern "C" fn by_name(path: *const c_char, arguments: Strings) -> c_int {
    process::execvpe(path, arguments, environment::own())
}
