//! What programs name addresses by.

use std::io;

use crate::address::{Address, split};
use crate::device::Device;
use crate::error::Error;

/// What names an address on a device, in the manner of `std::net::ToSocketAddrs`.
///
/// | type | |
/// |---|---|
/// | [`Address`] | itself |
/// | `u16` | a port of this host |
/// | `(&[u8], u16)`, `(&Vec<u8>, u16)` | a port of the host with these bytes ([`Device::host`]) |
/// | `(&str, u16)`, `&str` as `HOST:PORT` | a port of a host by its name, which the name service of VIPL knows |
/// | `&str` as `[02:56:01]:PORT` | by its bytes |
pub trait ToAddress {
    /// The address.
    ///
    /// # Errors
    /// [`Error::Address`], [`Error::NoHost`].
    fn to_address(&self, device: &Device) -> io::Result<Address>;
}

impl<T: ToAddress + ?Sized> ToAddress for &T {
    fn to_address(&self, device: &Device) -> io::Result<Address> {
        (**self).to_address(device)
    }
}

impl ToAddress for Address {
    fn to_address(&self, _device: &Device) -> io::Result<Address> {
        Ok(self.clone())
    }
}

impl ToAddress for u16 {
    fn to_address(&self, device: &Device) -> io::Result<Address> {
        Ok(Address { host: device.host(), port: *self })
    }
}

impl ToAddress for (&[u8], u16) {
    fn to_address(&self, _device: &Device) -> io::Result<Address> {
        Ok(Address::new(self.0, self.1))
    }
}

impl ToAddress for (&Vec<u8>, u16) {
    fn to_address(&self, _device: &Device) -> io::Result<Address> {
        Ok(Address::new(self.0, self.1))
    }
}

impl ToAddress for (&str, u16) {
    fn to_address(&self, device: &Device) -> io::Result<Address> {
        Ok(Address { host: device.host_by_name(self.0)?, port: self.1 })
    }
}

impl ToAddress for str {
    fn to_address(&self, device: &Device) -> io::Result<Address> {
        if self.starts_with('[') {
            return Ok(self.parse()?);
        }
        split(self).ok_or_else(|| Error::Address(self.to_owned()))?.to_address(device)
    }
}

impl ToAddress for String {
    fn to_address(&self, device: &Device) -> io::Result<Address> {
        self.as_str().to_address(device)
    }
}
