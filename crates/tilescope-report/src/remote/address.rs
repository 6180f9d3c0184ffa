//! Addresses of reports on other machines: `ssh://[user@]host[:port]/path`.

use crate::error::ReportError;
use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The prefix of addresses.
const SCHEME: &str = "ssh://";
/// The longest host name, user name and path that are accepted.
const MAX_NAME_BYTES: usize = 255;
const MAX_PATH_BYTES: usize = 4096;

/// The address of a report on another machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteAddress {
    user: Option<String>,
    host: String,
    port: Option<u16>,
    /// From the root, or from the home directory there if it begins with `~/`.
    path: String,
}

/// The reason why a string is not the address of a report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; an address is ssh://[user@]host[:port]/path: {text}")]
pub struct RemoteAddressError {
    problem: &'static str,
    text: String,
}

impl RemoteAddress {
    /// Parses a path as an address; `None` for paths of this machine.
    ///
    /// # Errors
    /// The path begins like an address but is none.
    pub fn of_path(path: &Path) -> Result<Option<Self>, RemoteAddressError> {
        if !is_remote(path) {
            return Ok(None);
        }
        path.to_string_lossy().parse().map(Some)
    }

    /// The same machine with another path.
    pub(crate) fn with_path(&self, path: impl Into<String>) -> Self {
        Self { path: path.into(), ..self.clone() }
    }

    /// The path on that machine.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The machine, with the user if one is named.
    pub fn host(&self) -> Cow<'_, str> {
        match &self.user {
            Some(user) => Cow::Owned(format!("{user}@{}", self.host)),
            None => Cow::Borrowed(&self.host),
        }
    }

    /// The arguments of `ssh` for this address. Neither user nor host begins with a dash.
    pub(super) fn ssh_arguments(&self) -> Vec<String> {
        let port = self.port.map(|port| ["-p".to_owned(), port.to_string()]);
        let mut arguments: Vec<String> = port.into_iter().flatten().collect();
        if let Some(user) = &self.user {
            arguments.extend(["-l".to_owned(), user.clone()]);
        }
        arguments.extend(["--".to_owned(), self.host.clone()]);
        arguments
    }

    /// An error for a problem at this address.
    pub(super) fn failed(&self, problem: String) -> ReportError {
        ReportError::Remote { problem, path: self.to_path() }
    }

    /// The address as the path of a report, for everything that opens reports.
    pub fn to_path(&self) -> PathBuf {
        PathBuf::from(self.to_string())
    }
}

/// True if a path is meant as an address on another machine.
pub fn is_remote(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().starts_with(SCHEME.as_bytes())
}

/// A path that is independent of the current directory. Addresses on other machines stay as they
/// are.
pub fn absolute_path(path: &Path) -> PathBuf {
    if is_remote(path) {
        return path.to_owned();
    }
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

impl FromStr for RemoteAddress {
    type Err = RemoteAddressError;

    fn from_str(text: &str) -> Result<Self, RemoteAddressError> {
        let refused =
            |problem| RemoteAddressError { problem, text: text.chars().take(200).collect() };
        let rest = text.strip_prefix(SCHEME).ok_or(refused("it is not an address"))?;
        let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, place) = match place.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, place),
        };
        let (host, port) = host_and_port(place).ok_or(refused("its port is not a number"))?;
        let user = user.map(|user| checked_name(user, refused, "its user name is invalid"));
        let host = checked_name(host, refused, "its host name is invalid")?;
        if path.is_empty() {
            return Err(refused("it has no path"));
        }
        let is_in_home = path.starts_with("~/");
        let path = decoded(path).ok_or(refused(
            "a percent sign must be followed by two hexadecimal \
                                         digits",
        ))?;
        if path.len() > MAX_PATH_BYTES || path.contains('\0') {
            return Err(refused("its path is invalid"));
        }
        let path = if is_in_home { path } else { format!("/{path}") };
        Ok(Self { user: user.transpose()?, host, port, path })
    }
}

/// The host and port of `host`, `host:22` or `[::1]:22`.
fn host_and_port(place: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            (host, if port.is_empty() { None } else { Some(port.strip_prefix(':')?) })
        }
        None => match place.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    match port {
        Some(port) => Some((host, Some(port.parse().ok().filter(|port| *port > 0)?))),
        None => Some((host, None)),
    }
}

/// A host or user name that no program can take for an option or anything else.
fn checked_name(
    name: &str,
    refused: impl Fn(&'static str) -> RemoteAddressError,
    problem: &'static str,
) -> Result<String, RemoteAddressError> {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-._:%+".contains(letter);
    let is_name = !name.is_empty() && name.len() <= MAX_NAME_BYTES && !name.starts_with('-');
    if is_name && name.chars().all(is_plain) { Ok(name.to_owned()) } else { Err(refused(problem)) }
}

/// A path with its percent escapes decoded.
fn decoded(path: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (digits, behind) = behind.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = behind;
    }
    String::from_utf8(bytes).ok()
}

impl fmt::Display for RemoteAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SCHEME)?;
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        if self.host.contains(':') {
            write!(f, "[{}]", self.host)?
        } else {
            f.write_str(&self.host)?
        }
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        if self.path.starts_with('~') {
            f.write_char('/')?;
        }
        for (at, letter) in self.path.char_indices() {
            match letter {
                // At the start of an address's path it would mean the home directory.
                '~' if at == 1 => f.write_str("%7e")?,
                '%' => f.write_str("%25")?,
                letter if letter.is_ascii_control() => write!(f, "%{:02x}", u32::from(letter))?,
                letter => f.write_char(letter)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    fn address(text: &str) -> RemoteAddress {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn addresses_are_parsed() {
        let whole = address("ssh://me@pod16:2222/data/run 1/profile.pop");
        assert_eq!((whole.host().as_ref(), whole.path()), ("me@pod16", "/data/run 1/profile.pop"));
        assert_eq!(whole.ssh_arguments(), ["-p", "2222", "-l", "me", "--", "pod16"]);
        assert_eq!(address("ssh://pod16/~/out").path(), "~/out");
        assert_eq!(address("ssh://pod16/a%20b%25").path(), "/a b%");
        assert_eq!(address("ssh://[::1]:22/a").ssh_arguments(), ["-p", "22", "--", "::1"]);
    }

    #[test]
    fn input_that_ssh_or_a_shell_could_misread_is_refused() {
        let bad = [
            "ssh://-oProxyCommand=x/a",
            "ssh://-v@host/a",
            "ssh://host;reboot/a",
            "ssh://a b/c",
            "ssh:///a",
            "ssh://host",
            "ssh://host/",
            "ssh://host:0/a",
            "ssh://host:x/a",
            "ssh://host:99999/a",
            "ssh://host/%zz",
            "ssh://host/%ff",
            "ssh://host/a%00",
            "ssh://$(id)/a",
            "ssh://@host/a",
            "ssh://[::1/a",
        ];
        for text in bad {
            assert!(text.parse::<RemoteAddress>().is_err(), "{text}");
        }
    }

    #[test]
    fn paths_of_this_machine_are_left_alone() {
        for path in ["out", "/ssh:/x", "ssh:/x", "./ssh://host/a", ""] {
            assert_eq!(RemoteAddress::of_path(Path::new(path)), Ok(None), "{path}");
        }
        let path = Path::new("ssh://pod16/a/b");
        assert_eq!(absolute_path(path), path);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn addresses_round_trip_as_text(
            user in proptest::option::of("[a-z][a-z0-9_.-]{0,8}"),
            host in "[a-z0-9][a-z0-9.-]{0,12}|[0-9a-f:]{2,12}",
            port in proptest::option::of(1u16..),
            path in "(/|~/)[^\0]{1,30}",
        ) {
            let address = RemoteAddress { user, host, port, path };
            prop_assert_eq!(address.to_string().parse::<RemoteAddress>(), Ok(address));
        }

        #[test]
        fn any_text_is_an_address_or_none(text in "(ssh://)?\\PC{0,40}") {
            if let Ok(address) = text.parse::<RemoteAddress>() {
                let host = address.ssh_arguments().pop().unwrap();
                prop_assert!(!host.starts_with('-') && !host.contains(char::is_whitespace));
            }
        }
    }
}
