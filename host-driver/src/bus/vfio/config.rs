//! Configuration space, as far as it says what the platform has set.

/// Where the list of capabilities begins.
const CAPABILITIES: usize = 0x34;
/// The capability of PCI Express, and where in it the device control register is (PCIe 3.0, 7.8.4).
const EXPRESS: u8 = 0x10;
const DEVICE_CONTROL: usize = 8;
/// Capabilities that fit: a list that runs in a circle ends too.
const MOST: usize = 48;

/// Bytes of the largest payload, and of the largest read request, that the function may send. None: the
/// bytes do not say.
pub(super) fn payload_sizes(config: &[u8]) -> Option<(u32, u32)> {
    let mut at = usize::from(*config.get(CAPABILITIES)?);
    for _ in 0..MOST {
        let [id, next] = *config.get(at..)?.first_chunk()?;
        if at == 0 {
            return None;
        }
        if id == EXPRESS {
            let control = config.get(at + DEVICE_CONTROL..)?.first_chunk().copied();
            let control = u16::from_le_bytes(control?);
            let size = |shift: u16| 128_u32 << (control >> shift & 7);
            return Some((size(5), size(12)));
        }
        at = next.into();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_found_behind_other_capabilities() {
        let mut config = vec![0; 256];
        assert_eq!((payload_sizes(&config), payload_sizes(&config[..64])), (None, None));
        config[CAPABILITIES] = 0x40;
        config[0x40..0x42].copy_from_slice(&[0x11, 0x80]);
        assert_eq!(payload_sizes(&config), None);
        config[0x80..0x82].copy_from_slice(&[EXPRESS, 0]);
        config[0x88..0x8a].copy_from_slice(&(2_u16 << 5 | 1 << 12).to_le_bytes());
        assert_eq!(payload_sizes(&config), Some((512, 256)));
        assert_eq!(payload_sizes(&config[..0x88]), None);
        config[0x40..0x42].copy_from_slice(&[0x11, 0x40]);
        assert_eq!(payload_sizes(&config), None, "a circle");
    }
}
