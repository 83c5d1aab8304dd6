//! The calls into the shims (`cosim/build/shim.rs`), behind a safe interface.
use super::{Inputs, Outputs};
use crate::coverage;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use verilated::vcd::Vcd;

/// The functions of one shim. Must match `Table` in `cosim/build/shim.rs`.
#[derive(Debug)]
#[repr(C)]
pub struct Table {
    create: unsafe extern "C" fn() -> *mut c_void,
    destroy: unsafe extern "C" fn(*mut c_void),
    eval: unsafe extern "C" fn(*mut c_void, *const c_void, *mut c_void),
    cycle: unsafe extern "C" fn(*mut c_void, *const c_void, *mut c_void),
    jump: unsafe extern "C" fn(*mut c_void, *const c_void, *mut c_void, u64),
    attach: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
    open_fst: unsafe extern "C" fn(*mut c_void, *const c_char) -> c_int,
    write_coverage: unsafe extern "C" fn(*mut c_void, *const c_char),
    in_size: usize,
    out_size: usize,
}

/// Ties a shim to its Rust structures. Only generated code implements it.
///
/// # Safety
/// `table()` must be the shim whose C++ `In` and `Out` have the layout of these types, and every
/// bit pattern that the shim writes must be valid in `Out`.
pub unsafe trait Block: 'static {
    /// Inputs of the block.
    type In: Inputs;
    /// Outputs of the block.
    type Out: Outputs;
    /// The name in `hdl::blocks!`.
    const NAME: &'static str;
    /// Whether the model can write waveforms.
    const TRACED: bool;
    /// The shim.
    fn table() -> &'static Table;
}

/// One model in C++.
///
/// Invariant: `raw` comes from `create` of `B`'s shim and goes to its `destroy` once, in `drop`.
/// `vcd`, if there, is what the shim was asked to write to.
pub(super) struct Instance<B: Block> {
    raw: NonNull<c_void>,
    vcd: Option<Vcd>,
    block: PhantomData<B>,
}

// SAFETY: a model that is Verilated without threads has no thread affinity, it shares nothing with
// other models (each has a context of its own), and every call goes through a unique reference.
unsafe impl<B: Block> Send for Instance<B> {}

impl<B: Block> Instance<B> {
    pub(super) fn new() -> Self {
        let table = B::table();
        // C++ has no types of size zero.
        assert_eq!(table.in_size, size_of::<B::In>().max(1), "layout of {} inputs", B::NAME);
        assert_eq!(table.out_size, size_of::<B::Out>().max(1), "layout of {} outputs", B::NAME);
        // SAFETY: `create` has no preconditions; it catches what its constructors throw.
        let raw = unsafe { (table.create)() };
        let raw = NonNull::new(raw).expect("memory for a Verilated model");
        Self { raw, vcd: None, block: PhantomData }
    }

    pub(super) fn eval(&mut self, inputs: &B::In, outputs: &mut B::Out) {
        let (inputs, outputs) = (ptr::from_ref(inputs).cast(), ptr::from_mut(outputs).cast());
        // SAFETY: `raw` is a live model of this shim (invariant), and both structures have its
        // layout (`Block`).
        unsafe { (B::table().eval)(self.raw.as_ptr(), inputs, outputs) };
    }

    pub(super) fn cycle(&mut self, inputs: &B::In, outputs: &mut B::Out) {
        let (inputs, outputs) = (ptr::from_ref(inputs).cast(), ptr::from_mut(outputs).cast());
        // SAFETY: `raw` is a live model of this shim (invariant), and both structures have its
        // layout (`Block`).
        unsafe { (B::table().cycle)(self.raw.as_ptr(), inputs, outputs) };
    }

    pub(super) fn jump(&mut self, inputs: &B::In, outputs: &mut B::Out, step: u64) {
        let (inputs, outputs) = (ptr::from_ref(inputs).cast(), ptr::from_mut(outputs).cast());
        // SAFETY: `raw` is a live model of this shim (invariant), and both structures have its
        // layout (`Block`).
        unsafe { (B::table().jump)(self.raw.as_ptr(), inputs, outputs, step) };
    }

    /// Makes the model write to `vcd`, which must not be open yet. False if it cannot.
    pub(super) fn attach(&mut self, vcd: Vcd) -> bool {
        // SAFETY: `raw` is live (invariant); the writer is a `VerilatedVcdC`, and lives until
        // `detach`.
        let done = unsafe { (B::table().attach)(self.raw.as_ptr(), vcd.0.cast()) } == 1;
        self.vcd = Some(vcd);
        done
    }

    /// The writer given to `attach`.
    pub(super) fn vcd(&mut self) -> Option<&mut Vcd> {
        self.vcd.as_mut()
    }

    /// Closes the VCD file.
    pub(super) fn detach(&mut self) {
        // SAFETY: `raw` is live (invariant); a null writer only makes the shim forget the old one.
        unsafe { (B::table().attach)(self.raw.as_ptr(), ptr::null_mut()) };
        self.vcd = None;
    }

    /// Opens an FST file, closed when the model goes. `Some(false)`: it cannot be written; `None`:
    /// no FST in this build.
    pub(super) fn open_fst(&mut self, path: &CStr) -> Option<bool> {
        // SAFETY: `raw` is live (invariant), and the shim copies the path, which ends in a null.
        let code = unsafe { (B::table().open_fst)(self.raw.as_ptr(), path.as_ptr()) };
        (code != 0).then_some(code > 0)
    }

    /// Adds what has run to the process's coverage, if somebody wants it.
    fn count_coverage(&self) {
        coverage::collect(|path| {
            // SAFETY: `raw` is live (invariant), and the shim copies the path, which ends in a null.
            unsafe { (B::table().write_coverage)(self.raw.as_ptr(), path.as_ptr()) };
        });
    }
}

impl<B: Block> Drop for Instance<B> {
    fn drop(&mut self) {
        self.detach();
        self.count_coverage();
        // SAFETY: `raw` is live until here (invariant), and nothing uses it afterwards.
        unsafe { (B::table().destroy)(self.raw.as_ptr()) };
    }
}
