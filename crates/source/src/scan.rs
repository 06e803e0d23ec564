//! Bytes of /proc → lines, fields and numbers, without allocating. Every function takes whatever it is given: text that
//! is not as the kernel writes it gives `None`, never a panic and never a wrong number.

/// The lines, without their ends.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty())
}

/// The fields of a line, apart by any number of blanks.
pub(crate) fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b' ' || byte == b'\t').filter(|field| !field.is_empty())
}

/// The whole field as a decimal number.
pub(crate) fn number(field: &[u8]) -> Option<u64> {
    let digit = |value: u64, byte: &u8| {
        let digit = byte.checked_sub(b'0').filter(|&digit| digit < 10)?;
        value.checked_mul(10)?.checked_add(u64::from(digit))
    };
    if field.is_empty() { None } else { field.iter().try_fold(0, digit) }
}

/// The whole field as a decimal number of 32 bits: a core, a pid.
pub(crate) fn number32(field: &[u8]) -> Option<u32> {
    number(field).and_then(|value| u32::try_from(value).ok())
}

/// The whole field as a hexadecimal number of 32 bits.
pub(crate) fn hex32(field: &[u8]) -> Option<u32> {
    let digit = |value: u32, byte: &u8| {
        let digit = char::from(*byte).to_digit(16)?;
        (value >> 28 == 0).then_some(value << 4 | digit)
    };
    if field.is_empty() { None } else { field.iter().try_fold(0, digit) }
}

/// What follows `key` and a colon on a line of the form `key   :   value`.
pub(crate) fn value_of<'a>(line: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let rest = line.strip_prefix(key)?.trim_ascii_start();
    Some(rest.strip_prefix(b":")?.trim_ascii())
}

/// `net:[INODE]`: a network namespace as links of `/proc/PID/ns` and mounts name it.
pub(super) fn netns(name: &[u8]) -> Option<u64> {
    number(name.strip_prefix(b"net:[")?.strip_suffix(b"]")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_read_whole_or_not_at_all() {
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX), "the largest counter fits");
        for wrong in [&b""[..], b"-1", b"1x", b"18446744073709551616", b" 1"] {
            assert_eq!(number(wrong), None, "{:?} is no counter", String::from_utf8_lossy(wrong));
        }
        assert_eq!(hex32(b"ffffffff"), Some(u32::MAX), "a full softnet counter fits");
        assert_eq!(hex32(b"100000000"), None, "33 bits are not a softnet counter");
    }

    #[test]
    fn values_stand_behind_their_key_only() {
        assert_eq!(value_of(b"nr_switches    :   182", b"nr_switches"), Some(&b"182"[..]), "blanks are not the value");
        assert_eq!(value_of(b"nr_switches_x : 1", b"nr_switches"), None, "a longer key is another key");
    }

    proptest! {
        #[test]
        fn any_number_reads_back(value: u64, short: u32) {
            prop_assert_eq!(number(value.to_string().as_bytes()), Some(value));
            prop_assert_eq!(hex32(format!("{short:08x}").as_bytes()), Some(short));
        }

        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            for line in lines(&bytes) {
                fields(line).for_each(|field| { let _ = (number(field), hex32(field), value_of(line, field)); });
            }
        }
    }
}
