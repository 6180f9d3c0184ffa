//! Copies a report from another machine into the cache directory: once for each version of the
//! file, resumed after a lost connection, and verified with a checksum.
//!
//! A copy has a separate directory below the cache directory, named by a hash of the address and
//! of the size, times and file number of the report there. It contains a directory named like the
//! one on the other machine, with the report and the files beside it; `copied.json`, a list of the
//! copied files; and a lock for processes that copy the same report at once.

// All code here reads bytes from untrusted machines.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::address::RemoteAddress;
use super::far_shell::{FarShell, LOOK};
use super::ssh::{RemoteSettings, quoted};
use crate::cache_directory::{CacheLimits, changed, remove_oldest};
use crate::error::ReportError;
use crate::open_file::{REPORT_FILE, with_suffix};
use crate::profile_readers::PROFILE_READERS;
use crate::report_location::no_report;
use crate::units::binary_bytes;
use siphasher::sip128::{Hasher128, SipHasher24};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::hash::Hasher;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

/// The directory of copies below the cache directory.
const CACHE_FOLDER: &str = "remote";
/// Limits on the copies in the cache.
const LIMITS: CacheLimits = CacheLimits { entries: 16, bytes: 32 << 30 };
/// The maximum number of files listed from a directory without a report.
const MAX_ENTRIES: usize = 1000;
/// The list of copied files. It is also the lock file.
const COPIED_FILE: &str = "copied.json";
const LOCK_FILE: &str = "lock";
/// The suffix of an incomplete file.
const PART: &str = ".part";

/// Files beside a report that are read, and files that are only listed. In addition,
/// `tilescope-*.json` and `NAME.*.json` are copied.
const COPIED_BESIDE: [&str; 3] = ["debug.cbor", "framework.json", "app.json"];
const LISTED_BESIDE: [&str; 5] =
    ["vars.capnp", "archive.a", "serialized_graph.capnp", "graph.json", "execution.json"];
/// Debug information of TensorFlow, shared by all reports of a run.
const SHARED_DEBUG_FILE: &str = "../debug.cbor";

/// A report of another machine, copied to this one.
pub(crate) struct CopiedReport {
    /// The copy of the report file.
    pub(crate) file: PathBuf,
    /// The address of the report file there.
    pub(crate) address: RemoteAddress,
    /// The report and the files beside it, as they are on that machine.
    pub(crate) files: Vec<RemoteFile>,
    /// The directory of the copy, if it is removed when the report is closed.
    pub(crate) temporary: Option<TempDir>,
}

/// A file on another machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RemoteFile {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    /// Seconds since 1970, if the other machine reports them.
    modified: Option<u64>,
    /// Size, times and file number, as the other machine formats them.
    stamp: String,
}

impl RemoteFile {
    pub(crate) fn modified(&self) -> Option<SystemTime> {
        self.modified.and_then(|seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds)))
    }

    fn new(name: &str, stamp: &str) -> Option<Self> {
        let mut numbers = stamp.split_whitespace();
        let bytes = numbers.next()?.parse().ok()?;
        let modified = numbers.next().and_then(|seconds| seconds.parse().ok());
        let stamp = stamp.trim().to_owned();
        Some(Self { name: name.to_owned(), bytes, modified, stamp })
    }
}

/// Copies the report at an address, unless the cache directory has it already. `progress` receives
/// sentences on the progress of the copy. Setting `cancel` aborts it with
/// [`ReportError::Cancelled`]. Without a cache directory the copy is removed when it is dropped.
///
/// # Errors
/// [`ReportError::Remote`] if the other machine cannot be reached, or its answer ends early or
/// changes; errors of a local report, with the address as path; an error if the cache cannot be
/// written.
pub(crate) fn copy_report(
    address: &RemoteAddress,
    cache_directory: Option<&Path>,
    progress: &mut dyn FnMut(&str),
    cancel: &AtomicBool,
) -> Result<CopiedReport, ReportError> {
    let settings = RemoteSettings::current();
    progress(&format!("connecting to {}", address.host()));
    let mut shell = FarShell::connect(address, &settings, cancel)?;
    let listing = list(&mut shell, address)?;
    let address = address.with_path(listing.path.as_str());
    let cache_directory = settings.copies.as_deref().or(cache_directory);
    let (place, temporary) = match cache_directory.map(|cache| keep(cache, &address, &listing)) {
        Some(Ok(place)) => (place, None),
        // It cannot be kept, so it exists only while it is open.
        Some(Err(_)) | None => {
            let directory = tempfile::tempdir()
                .map_err(|error| ReportError::writing(&error, &std::env::temp_dir()))?;
            (directory.path().to_owned(), Some(directory))
        }
    };
    let copying = Copying { address: &address, place: &place, listing: &listing, cancel };
    copying.run(&mut shell, progress)?;
    if temporary.is_none() {
        remove_oldest(&place, &LIMITS, |copy| {
            let opened = changed(&copy.join(COPIED_FILE)).or_else(|| changed(copy))?;
            if !is_locked(copy) { Some((opened, bytes_below(copy))) } else { None }
        });
    }
    let file = copying.local(&listing.report.name);
    let files = [vec![listing.report], listing.beside].concat();
    Ok(CopiedReport { file, address, files, temporary })
}

/// A report and the files beside it, as the other machine lists them.
struct RemoteListing {
    /// Path of the report file there.
    path: String,
    report: RemoteFile,
    beside: Vec<RemoteFile>,
}

impl RemoteListing {
    /// The name of the report's directory. TensorFlow's names show that debug information is in the
    /// parent directory.
    fn directory_name(&self) -> &str {
        let name = self.path.rsplit('/').nth(1).unwrap_or_default();
        if is_plain_name(name) { name } else { "report" }
    }
}

/// True for a plain file name in every operating system, without directories.
fn is_plain_name(name: &str) -> bool {
    let has_path = |letter: char| letter.is_control() || "/\\:".contains(letter);
    !name.is_empty() && name.len() <= 255 && name != "." && name != ".." && !name.contains(has_path)
}

/// Shell commands that list a report. `stamp` prints size, times and file number of a file, with
/// the `stat` of Linux or of BSD, or at least its size.
const LIST: &str = r#"
stamp() {
  stat -L -c '%s %Y %Z %i' -- "$1" 2>/dev/null || stat -L -f '%z %m %c %i' -- "$1" 2>/dev/null ||
    wc -c < "$1"
}
found() {
  [ -f "$d/$1" ] || return
  if [ -r "$d/$1" ]; then printf 'file\t%s\t%s\n' "$(stamp "$d/$1")" "$1"
  else printf 'denied\t%s\n' "$1"; fi
}
d=${p%/*}; n=${p##*/}
if [ -d "$p" ]; then
  d=$p; n=
  for f in REPORTS; do [ -f "$d/$f" ] && n=$f && break; done
fi
if [ -n "$n" ] && [ -f "$d/$n" ]; then
  printf 'report\t%s\t%s\n' "$d" "$n"
  found "$n"; found "$n-wal"
  for f in BESIDE; do found "$f"; done
  for f in "$d"/tilescope-*.json "$d/$n".*.json; do found "${f##*/}"; done
  case ${d##*/} in tf_report_*) found ../debug.cbor ;; esac
elif [ -d "$p" ]; then
  i=0
  printf 'directory\n'
  for f in "$p"/*; do
    [ -e "$f" ] || continue
    i=$((i + 1)); [ $i -gt MOST ] && break
    r=; s=
    if [ -d "$f" ]; then s=/; for g in REPORTS; do [ -f "$f/$g" ] && r=report; done
    else case $f in *.pop) r=report ;; esac; fi
    printf 'entry\t%s\t%s%s\n' "$r" "${f##*/}" "$s"
  done
elif [ -e "$p" ]; then printf 'other\n'
else printf 'nothing\n'; fi
printf 'listed\n'
"#;

/// Lists the report at an address and the files beside it.
fn list(shell: &mut FarShell, address: &RemoteAddress) -> Result<RemoteListing, ReportError> {
    let path = address.path();
    let trimmed = if path.len() > 1 { path.trim_end_matches('/') } else { path };
    let quoted_path = quoted(trimmed).map_err(|problem| address.failed(problem))?;
    let reports: Vec<&str> = std::iter::once(REPORT_FILE)
        .chain(PROFILE_READERS.iter().map(|reader| reader.file_name))
        .collect();
    let commands = LIST
        .replace("REPORTS", &reports.join(" "))
        .replace("BESIDE", &[&COPIED_BESIDE[..], &LISTED_BESIDE].concat().join(" "))
        .replace("MOST", &MAX_ENTRIES.to_string());
    shell.run(&format!("p={quoted_path}\n{commands}"))?;
    let mut path = None;
    let mut files: Vec<RemoteFile> = Vec::new();
    let mut names = Vec::new();
    let mut inside = Vec::new();
    loop {
        let line = shell.line()?;
        let fields: Vec<&str> = line.splitn(3, '\t').collect();
        match fields.as_slice() {
            ["report", directory, name]
                if is_plain_name(name) && (directory.is_empty() || directory.starts_with('/')) =>
            {
                path = Some((format!("{directory}/{name}"), (*name).to_owned()));
            }
            ["file", stamp, name] if is_plain_name(name) || *name == SHARED_DEBUG_FILE => {
                let file = RemoteFile::new(name, stamp);
                files.push(file.ok_or_else(|| shell.not_understood(&line))?);
            }
            ["denied", name] => {
                let is_report = path.as_ref().is_some_and(|(_, report)| report == name);
                if is_report {
                    let source = std::io::ErrorKind::PermissionDenied.into();
                    return Err(ReportError::Read { source, path: address.to_path() });
                }
            }
            ["directory"] => {}
            ["entry", kind, name] => {
                names.push((*name).to_owned());
                if *kind == "report" {
                    inside.push((*name).to_owned());
                }
            }
            ["other"] => {
                let found = "this is not a regular file".to_owned();
                return Err(ReportError::NotAReport { found, path: address.to_path() });
            }
            ["nothing"] => return Err(ReportError::NotFound { path: address.to_path() }),
            ["listed"] => break,
            _ => return Err(shell.not_understood(&line)),
        }
        if files.len() + names.len() > 2 * MAX_ENTRIES {
            return Err(shell.not_understood("an endless list"));
        }
    }
    let Some((path, name)) = path else {
        return Err(no_report(&names, inside, &address.to_path()));
    };
    let at = files.iter().position(|file| file.name == name);
    let Some(report) = at.map(|at| files.remove(at)) else {
        return Err(shell.not_understood("a report without a size"));
    };
    Ok(RemoteListing { path, report, beside: files })
}

/// The directory of a copy below the cache directory.
fn keep(
    cache: &Path,
    address: &RemoteAddress,
    listing: &RemoteListing,
) -> std::io::Result<PathBuf> {
    let mut hasher = SipHasher24::new();
    hasher.write(address.to_string().as_bytes());
    hasher.write(listing.report.stamp.as_bytes());
    let name = format!("{:032x}", hasher.finish128().as_u128());
    let place = cache.join(CACHE_FOLDER).join(name);
    fs::create_dir_all(&place)?;
    Ok(place)
}

/// A report that is being copied.
struct Copying<'a> {
    address: &'a RemoteAddress,
    place: &'a Path,
    listing: &'a RemoteListing,
    cancel: &'a AtomicBool,
}

impl Copying<'_> {
    /// The path of the copy of a file.
    fn local(&self, name: &str) -> PathBuf {
        let directory = self.place.join(self.listing.directory_name());
        match name {
            SHARED_DEBUG_FILE => self.place.join("debug.cbor"),
            _ => directory.join(name),
        }
    }

    /// Copies the files that are missing or have changed.
    fn run(&self, shell: &mut FarShell, progress: &mut dyn FnMut(&str)) -> Result<(), ReportError> {
        let directory = self.place.join(self.listing.directory_name());
        fs::create_dir_all(&directory).map_err(|error| ReportError::writing(&error, &directory))?;
        // Held until this function returns.
        let _lock = self.lock(progress)?;
        let list = self.place.join(COPIED_FILE);
        let known: BTreeMap<String, String> = fs::read(&list)
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default();
        let mut copied = BTreeMap::new();
        for file in std::iter::once(&self.listing.report).chain(&self.listing.beside) {
            if LISTED_BESIDE.contains(&file.name.as_str()) {
                continue;
            }
            // A file with an unknown time may be another one of the same size.
            let is_known = file.modified.is_some() && known.get(&file.name) == Some(&file.stamp);
            if !is_known || !self.local(&file.name).is_file() {
                self.copy(file, shell, progress)?;
            }
            copied.insert(file.name.clone(), file.stamp.clone());
        }
        for gone in known.keys().filter(|name| !copied.contains_key(*name)) {
            if is_plain_name(gone) || gone == SHARED_DEBUG_FILE {
                let _ = fs::remove_file(self.local(gone));
            }
        }
        // Written in any case: its age is the time since the copy was last opened.
        let text = serde_json::to_vec(&copied).unwrap_or_default();
        fs::write(&list, text).map_err(|error| ReportError::writing(&error, &list))
    }

    /// Waits until no other process copies the same report.
    fn lock(&self, progress: &mut dyn FnMut(&str)) -> Result<File, ReportError> {
        let path = self.place.join(LOCK_FILE);
        let to_error = |error| ReportError::writing(&error, &path);
        let lock = File::create(&path).map_err(to_error)?;
        let mut is_reported = false;
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(lock),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(to_error(error)),
            }
            if !std::mem::replace(&mut is_reported, true) {
                progress("waiting for another process that copies the same report");
            }
            self.check_cancelled()?;
            std::thread::sleep(LOOK);
        }
    }

    fn check_cancelled(&self) -> Result<(), ReportError> {
        if self.cancel.load(Ordering::Relaxed) { Err(ReportError::Cancelled) } else { Ok(()) }
    }

    /// Copies one file.
    fn copy(
        &self,
        file: &RemoteFile,
        shell: &mut FarShell,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), ReportError> {
        let place = self.local(&file.name);
        let unfinished = with_suffix(&place, PART);
        let to_error = |error| ReportError::writing(&error, &unfinished);
        // The directory belongs to one version of the report, so an incomplete file is the
        // beginning of this version.
        let is_resumed = file == &self.listing.report;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(!is_resumed);
        let mut part = options.open(&unfinished).map_err(to_error)?;
        let mut done = part.seek(SeekFrom::End(0)).map_err(to_error)?;
        if done > file.bytes {
            part.set_len(0).map_err(to_error)?;
            done = part.seek(SeekFrom::Start(0)).map_err(to_error)?;
        }
        shell.run(&self.fetch(file, done)?)?;
        expect(shell, "data")?;
        let mut percent = None;
        while done < file.bytes {
            let now = done * 100 / file.bytes;
            if percent.replace(now) != Some(now) {
                progress(&format!(
                    "copying {} from {}: {} of {}, {now} %",
                    file.name,
                    self.address.host(),
                    binary_bytes(done),
                    binary_bytes(file.bytes)
                ));
            }
            let piece = shell.bytes(file.bytes - done)?;
            part.write_all(piece).map_err(to_error)?;
            done += piece.len() as u64;
        }
        expect(shell, "")?;
        if after(shell, "now\t")?.trim() != file.stamp {
            let _ = fs::remove_file(&unfinished);
            let problem =
                "it was written to while it was copied; open it again when it is complete";
            return Err(self.address.failed(problem.to_owned()));
        }
        let theirs = after(shell, "sum\t")?;
        if theirs.split_whitespace().next() != Some(&self.checksum(&mut part, &unfinished)?) {
            let _ = fs::remove_file(&unfinished);
            let problem = format!("the copy of {} differs from the file; open it again", file.name);
            return Err(self.address.failed(problem));
        }
        if let Some(modified) = file.modified() {
            part.set_modified(modified).map_err(to_error)?;
        }
        part.sync_all().map_err(to_error)?;
        #[expect(
            clippy::disallowed_methods,
            reason = "synced above, and a new copy is made if it fails"
        )]
        fs::rename(&unfinished, &place).map_err(to_error)
    }

    /// Shell commands that send a file from a given byte on, then its stamp and its checksum.
    ///
    /// The checksum of a large file takes a while; `wait` meanwhile shows that the connection is
    /// alive.
    fn fetch(&self, file: &RemoteFile, done: u64) -> Result<String, ReportError> {
        let name = quoted(&file.name).map_err(|problem| self.address.failed(problem))?;
        let first = done + 1;
        Ok(format!(
            "f=\"$d\"/{name}\n\
             printf 'data\\n'; tail -c +{first} \"$f\"; printf '\\nnow\\t%s\\n' \"$(stamp \"$f\")\"\n\
             (while :; do sleep 5 > /dev/null; printf 'wait\\n'; done) & w=$!\n\
             printf 'sum\\t%s\\n' \"$(cksum < \"$f\")\"; kill $w\n"
        ))
    }

    /// The checksum of `cksum` (POSIX): a CRC of the content and of its length, as text.
    fn checksum(&self, file: &mut File, path: &Path) -> Result<String, ReportError> {
        let to_error = |error| ReportError::reading(error, path);
        file.seek(SeekFrom::Start(0)).map_err(to_error)?;
        let mut sum = Checksum::new();
        let mut buffer = vec![0; 1 << 20];
        loop {
            self.check_cancelled()?;
            let count = file.read(&mut buffer).map_err(to_error)?;
            if count == 0 {
                return Ok(sum.finish().to_string());
            }
            sum.add(buffer.get_mut(..count).unwrap_or_default());
        }
    }
}

/// Reads the next line, which must be this one.
fn expect(shell: &mut FarShell, expected: &str) -> Result<(), ReportError> {
    let rest = after(shell, expected)?;
    if rest.is_empty() { Ok(()) } else { Err(shell.not_understood(&rest)) }
}

/// The rest of the next line, which must have this prefix; keep-alive lines are skipped.
fn after(shell: &mut FarShell, start: &str) -> Result<String, ReportError> {
    loop {
        let line = shell.line()?;
        match line.strip_prefix(start) {
            _ if line == "wait" => {}
            Some(rest) => return Ok(rest.to_owned()),
            None => return Err(shell.not_understood(&line)),
        }
    }
}

/// The checksum of POSIX `cksum`: CRC-32 with the polynomial 0x04C11DB7, highest bit first and from 0,
/// over the content and then over its length, lowest byte first.
struct Checksum {
    /// The same CRC with bits in the order of zlib.
    crc: crc32fast::Hasher,
    bytes: u64,
}

impl Checksum {
    fn new() -> Self {
        // zlib starts with all bits set, and inverts its initial value.
        Self { crc: crc32fast::Hasher::new_with_initial(u32::MAX), bytes: 0 }
    }

    /// Adds content; reverses the bits of its bytes in place.
    fn add(&mut self, content: &mut [u8]) {
        self.bytes += content.len() as u64;
        for byte in content.iter_mut() {
            *byte = byte.reverse_bits();
        }
        self.crc.update(content);
    }

    fn finish(mut self) -> u32 {
        let mut length = self.bytes;
        while length > 0 {
            let [low, ..] = length.to_le_bytes();
            self.crc.update(&[low.reverse_bits()]);
            length >>= 8;
        }
        self.crc.finalize().reverse_bits()
    }
}

/// True while a process copies into this directory.
fn is_locked(copy: &Path) -> bool {
    File::open(copy.join(LOCK_FILE)).is_ok_and(|lock| lock.try_lock().is_err())
}

/// Total size in bytes of the files in a copy.
fn bytes_below(copy: &Path) -> u64 {
    let mut bytes = 0;
    for entry in fs::read_dir(copy).into_iter().flatten().flatten() {
        for file in fs::read_dir(entry.path()).into_iter().flatten().flatten() {
            bytes += file.metadata().map_or(0, |found| found.len());
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_cksum() {
        // As printed by `printf TEXT | cksum` of GNU coreutils 9.1 and of busybox 1.36.
        let long = "tilescope".repeat(10_000);
        for (text, expected) in
            [("", 4_294_967_295), ("123456789", 930_766_865), (long.as_str(), 3_611_529_922)]
        {
            let mut sum = Checksum::new();
            let mut bytes = text.as_bytes().to_vec();
            let (first, second) = bytes.split_at_mut(text.len() / 3);
            sum.add(first);
            sum.add(second);
            assert_eq!(sum.finish(), expected, "{} bytes", text.len());
        }
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in ["", ".", "..", "a/b", "../x", "a\\b", "c:x", "a\nb"] {
            assert!(!is_plain_name(name), "{name:?}");
        }
        assert!(is_plain_name("it's a \"report\".pop"));
    }
}
