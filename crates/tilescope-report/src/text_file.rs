//! Reading small untrusted text files.

use crate::units::{Bytes, binary_bytes};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::Path;

/// The text of a regular file of at most `limit` bytes.
///
/// Reading a pipe may block forever and a device may have no end, so both are refused.
///
/// # Errors
/// The file is missing, not regular, too long, or not UTF-8.
pub fn read_text(path: &Path, limit: Bytes) -> io::Result<String> {
    // Checked before it is opened: opening a pipe blocks until another process writes to it.
    check(&fs::metadata(path)?, limit)?;
    let file = File::open(path)?;
    check(&file.metadata()?, limit)?;
    let mut text = String::new();
    // The file may grow while it is read.
    file.take(limit.0.saturating_add(1)).read_to_string(&mut text)?;
    if text.len() as u64 > limit.0 { Err(too_long(limit)) } else { Ok(text) }
}

fn check(found: &Metadata, limit: Bytes) -> io::Result<()> {
    if found.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "this is a directory"));
    }
    if !found.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is not a regular file"));
    }
    if found.len() > limit.0 { Err(too_long(limit)) } else { Ok(()) }
}

fn too_long(limit: Bytes) -> io::Error {
    let words = format!("longer than {}", binary_bytes(limit.0));
    io::Error::new(io::ErrorKind::FileTooLarge, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_up_to_the_limit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("text");
        fs::write(&path, "four").unwrap();
        assert_eq!(read_text(&path, Bytes(4)).unwrap(), "four");
        assert_eq!(read_text(&path, Bytes(3)).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        fs::write(&path, [0xff]).unwrap();
        assert_eq!(read_text(&path, Bytes(9)).unwrap_err().kind(), io::ErrorKind::InvalidData);
        let error = read_text(directory.path(), Bytes(9)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
    }

    #[cfg(unix)]
    #[test]
    fn pipes_and_devices_do_not_block() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        let pipe = made.is_ok_and(|made| made.success()).then_some(pipe);
        for path in pipe.iter().map(std::path::PathBuf::as_path).chain([Path::new("/dev/zero")]) {
            let error = read_text(path, Bytes(9)).unwrap_err();
            assert_eq!(error.to_string(), "this is not a regular file", "{}", path.display());
        }
    }
}
