//! Processes: begun, replaced and ended.
#![expect(unsafe_code, reason = "exported names, and what the linker runs first")]

use core::ffi::{c_char, c_int, c_ulong, c_void};

use libc::{pid_t, uid_t};
use port::process::{around_forks, at_exit};

use super::environment::Strings;
use super::{environment, stand_in, stdio};
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
    port::own::keep_away();
    stdio::install();
    environment::remember();
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

stand_in! {
    /// A child that shared the parent's memory would change what the parent knows.
    pub(super) fn vfork() -> pid_t {
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

    pub(super) fn execve(path: *const c_char, arguments: Strings, environment: Strings) -> c_int {
        leaving::give_all();
        environment::with_library(environment, |environment| real::execve(path, arguments, environment))
    }

    pub(super) fn execvpe(path: *const c_char, arguments: Strings, environment: Strings) -> c_int {
        leaving::give_all();
        environment::with_library(environment, |environment| real::execvpe(path, arguments, environment))
    }

    fn execv(path: *const c_char, arguments: Strings) -> c_int {
        leaving::give_all();
        environment::with_library(environment::own(), |environment| {
            real::execve(path, arguments, environment)
        })
    }

    fn execvp(path: *const c_char, arguments: Strings) -> c_int {
        leaving::give_all();
        environment::with_library(environment::own(), |environment| {
            real::execvpe(path, arguments, environment)
        })
    }

    fn fexecve(fd: c_int, arguments: Strings, environment: Strings) -> c_int {
        leaving::give_all();
        environment::with_library(environment, |environment| real::fexecve(fd, arguments, environment))
    }

    fn posix_spawn(
        child: *mut pid_t, path: *const c_char, actions: *const c_void,
        attributes: *const c_void, arguments: Strings, environment: Strings,
    ) -> c_int {
        table::share_all();
        environment::with_library(environment, |environment| {
            real::posix_spawn(child, path, actions, attributes, arguments, environment)
        })
    }

    fn posix_spawnp(
        child: *mut pid_t, path: *const c_char, actions: *const c_void,
        attributes: *const c_void, arguments: Strings, environment: Strings,
    ) -> c_int {
        table::share_all();
        environment::with_library(environment, |environment| {
            real::posix_spawnp(child, path, actions, attributes, arguments, environment)
        })
    }

    /// Another root, or another user, has not this one's folder.
    pub(super) fn chroot(path: *const c_char) -> c_int {
        moving::confine();
        real::chroot(path)
    }

    pub(super) fn setuid(user: uid_t) -> c_int {
        confine_for(user);
        real::setuid(user)
    }

    fn seteuid(user: uid_t) -> c_int {
        confine_for(user);
        real::seteuid(user)
    }

    pub(super) fn setreuid(first: uid_t, effective: uid_t) -> c_int {
        confine_for(effective);
        real::setreuid(first, effective)
    }

    pub(super) fn setresuid(first: uid_t, effective: uid_t, saved: uid_t) -> c_int {
        confine_for(effective);
        real::setresuid(first, effective, saved)
    }

    /// A process that restricts its system calls leaves VIA first: nobody knows which it keeps.
    pub(super) fn prctl(option: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int {
        if option == libc::PR_SET_SECCOMP {
            moving::confine();
        }
        real::prctl(option, a, b, c, d)
    }
}
