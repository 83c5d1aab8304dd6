//! Processes: begun, replaced and ended.
#![expect(unsafe_code, reason = "exported names, and what the linker runs first")]

use core::ffi::{c_char, c_int, c_ulong, c_void};

use libc::{pid_t, uid_t};
use port::process::{around_forks, at_exit};

use super::stand_in;
use crate::leaving;
use crate::log;
use crate::moving;
use crate::real;
use crate::table;

/// What the linker runs when it has loaded the library.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

extern "C" fn begin() {
    let _ = log::settings();
    let _ = around_forks(nothing, share, share) && at_exit(leaving::at_exit);
}

extern "C" fn nothing() {}

/// What this process has, its child has, too.
extern "C" fn share() {
    table::share_all();
}

/// This process becomes another user's.
fn confine_for(user: uid_t) {
    let is_same = user == uid_t::MAX || user == rustix::process::geteuid().as_raw();
    if !is_same {
        moving::confine();
    }
}

type Strings = *const *const c_char;

stand_in! {
    /// A child that shared the parent's memory would change what the parent knows.
    fn vfork() -> pid_t {
        real::fork()
    }

    fn _exit(status: c_int) {
        leaving::end_all();
        real::exit_now(status);
    }

    fn _Exit(status: c_int) {
        leaving::end_all();
        real::exit_now(status);
    }

    fn execve(path: *const c_char, arguments: Strings, environment: Strings) -> c_int {
        leaving::give_all();
        real::execve(path, arguments, environment)
    }

    fn execvpe(path: *const c_char, arguments: Strings, environment: Strings) -> c_int {
        leaving::give_all();
        real::execvpe(path, arguments, environment)
    }

    fn execv(path: *const c_char, arguments: Strings) -> c_int {
        leaving::give_all();
        real::execv(path, arguments)
    }

    fn execvp(path: *const c_char, arguments: Strings) -> c_int {
        leaving::give_all();
        real::execvp(path, arguments)
    }

    fn fexecve(fd: c_int, arguments: Strings, environment: Strings) -> c_int {
        leaving::give_all();
        real::fexecve(fd, arguments, environment)
    }

    fn posix_spawn(
        child: *mut pid_t, path: *const c_char, actions: *const c_void,
        attributes: *const c_void, arguments: Strings, environment: Strings,
    ) -> c_int {
        table::share_all();
        real::posix_spawn(child, path, actions, attributes, arguments, environment)
    }

    fn posix_spawnp(
        child: *mut pid_t, path: *const c_char, actions: *const c_void,
        attributes: *const c_void, arguments: Strings, environment: Strings,
    ) -> c_int {
        table::share_all();
        real::posix_spawnp(child, path, actions, attributes, arguments, environment)
    }

    /// Another root, or another user, has not this one's folder.
    fn chroot(path: *const c_char) -> c_int {
        moving::confine();
        real::chroot(path)
    }

    fn setuid(user: uid_t) -> c_int {
        confine_for(user);
        real::setuid(user)
    }

    fn setreuid(first: uid_t, effective: uid_t) -> c_int {
        confine_for(effective);
        real::setreuid(first, effective)
    }

    fn setresuid(first: uid_t, effective: uid_t, saved: uid_t) -> c_int {
        confine_for(effective);
        real::setresuid(first, effective, saved)
    }

    /// A process that restricts its system calls leaves VIA first: nobody knows which it keeps.
    fn prctl(option: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int {
        if option == libc::PR_SET_SECCOMP {
            moving::confine();
        }
        real::prctl(option, a, b, c, d)
    }
}
