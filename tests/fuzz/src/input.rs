//! Bytes read as choices: what is left of them decides, and behind their end all is zero.

/// The bytes of an input that were not read yet.
#[derive(Clone, Debug)]
pub(crate) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next bytes, as many as there are.
    pub(crate) fn bytes(&mut self, most: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let bytes = self.bytes(N);
        array[..bytes.len()].copy_from_slice(bytes);
        array
    }

    pub(crate) fn u8(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.u8() & 1 != 0
    }

    /// A number below `limit`, of one byte.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::from(self.u8()) % limit
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// The lowest bits of a number, and whether each is set: which fields of a structure are not as they
/// should be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mask(u16);

impl Mask {
    pub(crate) fn of(input: &mut Input<'_>) -> Self {
        Self(input.u16())
    }

    /// Takes the lowest bit off.
    pub(crate) const fn next(&mut self) -> bool {
        let bit = self.0 & 1 != 0;
        self.0 >>= 1;
        bit
    }
}
