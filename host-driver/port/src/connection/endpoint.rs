//! A side of a connection as the other side's port sees it.

use crate::attributes::RemoteAttributes;
use crate::error::{Error, Result};

/// Most bytes of [`ProviderData`].
pub const PROVIDER_DATA_MAX: usize = 32;

/// What the providers of the two sides of a connection exchange, beside what VIPL knows of a VI.
/// Opaque to the connection manager; a port that needs nothing of the kind sends none. It arrives
/// from another node, so a port trusts it no more than any frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProviderData {
    length: u8,
    /// Zero from `length` on, so that equal data are equal.
    bytes: [u8; PROVIDER_DATA_MAX],
}

impl ProviderData {
    /// No bytes.
    pub const EMPTY: Self = Self { length: 0, bytes: [0; PROVIDER_DATA_MAX] };

    /// These bytes.
    ///
    /// # Errors
    /// [`Error::BadArgument`] for more than [`PROVIDER_DATA_MAX`].
    pub fn new(data: &[u8]) -> Result<Self> {
        let mut bytes = [0; PROVIDER_DATA_MAX];
        let length = u8::try_from(data.len()).ok();
        let (Some(length), Some(front)) = (length, bytes.get_mut(..data.len())) else {
            let (what, value) = ("length of provider data", data.len() as u64);
            return Err(Error::BadArgument { what, value });
        };
        front.copy_from_slice(data);
        Ok(Self { length, bytes })
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Number of bytes.
    #[must_use]
    pub(super) const fn length(&self) -> u8 {
        self.length
    }
}

/// The VI of one side, as the other side's port sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// What VIPL knows of it.
    pub attributes: RemoteAttributes,
    /// What its provider sent.
    pub data: ProviderData,
}

impl Endpoint {
    /// The same under the connection id that the requester chose.
    pub(super) const fn under(self, connection: u16) -> Self {
        Self { attributes: RemoteAttributes { connection, ..self.attributes }, ..self }
    }
}

/// A VI whose provider sends no data.
impl From<RemoteAttributes> for Endpoint {
    fn from(attributes: RemoteAttributes) -> Self {
        Self { attributes, data: ProviderData::EMPTY }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn provider_data_keeps_up_to_32_bytes() {
        let bytes: Vec<u8> = (1..=33).collect();
        for length in 0..=PROVIDER_DATA_MAX {
            assert_eq!(ProviderData::new(&bytes[..length]).unwrap().bytes(), &bytes[..length]);
        }
        assert_eq!(ProviderData::new(&[]).unwrap(), ProviderData::EMPTY);
        for long in [&bytes[..], &[0; 256], &[0; 288]] {
            assert!(matches!(ProviderData::new(long), Err(Error::BadArgument { .. })));
        }
    }
}
