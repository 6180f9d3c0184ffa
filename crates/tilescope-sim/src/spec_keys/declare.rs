//! The declaration of options: [`spec_table!`] makes a struct, its defaults, its reader and its
//! keys from one entry per option, [`spec_words!`] an enum and its words.

use super::key::{KeyNotes, LARGEST_SIZE, Renamed, SpecKey, SpecKeyType};
use super::value::SpecValue;
use crate::shape::DType;
use std::borrow::Cow;

/// A type that a key of a spec may have.
pub(crate) trait SpecField: Sized {
    /// The accepted values, unless the entry of a key overrides them.
    const FORM: SpecKeyType;
    /// Words of earlier versions.
    const RENAMED: &'static [Renamed] = &[];

    /// Converts a value that [`Self::FORM`] accepts. Returns `None` for other values.
    fn from_spec(value: &SpecValue) -> Option<Self>;

    /// Converts to the value that a spec writes.
    fn to_spec(&self) -> SpecValue;
}

/// The source of tables: values that were checked against their keys.
pub(crate) trait ChosenValues {
    /// The value in effect instead of the default, if any.
    fn chosen(&self, path: &str) -> Option<SpecValue>;

    /// The value of a field of a table, if it is set.
    fn field<T: SpecField>(&self, prefix: &str, name: &str) -> Option<T> {
        self.chosen(&format!("{prefix}.{name}")).and_then(|value| T::from_spec(&value))
    }
}

/// A table of a spec.
pub(crate) trait SpecTable: Sized {
    /// Adds the keys of the table. `place` is the position of the table.
    fn declare(place: &TablePlace, keys: &mut Vec<SpecKey>);

    /// Reads the table from values that were checked against its keys.
    fn read(prefix: &str, values: &impl ChosenValues) -> Self;
}

/// The position of a table, and the words for the texts of its keys: `{name}` in a text is replaced
/// by the word of that name.
pub(crate) struct TablePlace<'a> {
    pub prefix: &'a str,
    pub words: &'a [(&'a str, &'a str)],
}

impl TablePlace<'_> {
    /// Makes a key of the table.
    pub(crate) fn key<T: SpecField>(
        &self,
        name: &str,
        form: SpecKeyType,
        default: String,
        about: &str,
        notes: KeyNotes,
    ) -> SpecKey {
        SpecKey {
            path: Cow::Owned(format!("{}.{name}", self.prefix)),
            value_type: form,
            renamed: T::RENAMED,
            default: Cow::Owned(default),
            about: Cow::Owned(self.complete(about.trim())),
            notes: notes.map_texts(|text| self.complete(text)),
        }
    }

    fn complete(&self, text: &str) -> String {
        let mut text = text.to_string();
        for (name, word) in self.words {
            text = text.replace(&format!("{{{name}}}"), word);
        }
        text
    }
}

/// The path of a table inside another. An empty name leaves its keys in the outer table.
pub(crate) fn inner_prefix(prefix: &str, name: &str) -> String {
    if name.is_empty() { prefix.to_string() } else { format!("{prefix}.{name}") }
}

impl SpecField for u64 {
    const FORM: SpecKeyType = SpecKeyType::Integer(0, LARGEST_SIZE);

    fn from_spec(value: &SpecValue) -> Option<Self> {
        match value {
            SpecValue::Integer(number) => Self::try_from(*number).ok(),
            _ => None,
        }
    }

    fn to_spec(&self) -> SpecValue {
        SpecValue::Integer(i64::try_from(*self).unwrap_or(i64::MAX))
    }
}

impl SpecField for Elements {
    const FORM: SpecKeyType = u64::FORM;

    fn from_spec(value: &SpecValue) -> Option<Self> {
        u64::from_spec(value).map(Self)
    }

    fn to_spec(&self) -> SpecValue {
        self.0.to_spec()
    }
}

impl SpecField for u32 {
    const FORM: SpecKeyType = u64::FORM;

    fn from_spec(value: &SpecValue) -> Option<Self> {
        u64::from_spec(value).and_then(|number| Self::try_from(number).ok())
    }

    fn to_spec(&self) -> SpecValue {
        SpecValue::Integer(i64::from(*self))
    }
}

impl SpecField for f64 {
    const FORM: SpecKeyType = SpecKeyType::RealFrom(0.0, Self::MAX);

    fn from_spec(value: &SpecValue) -> Option<Self> {
        match value {
            SpecValue::Float(number) => Some(*number),
            SpecValue::Integer(number) => Some(*number as Self),
            _ => None,
        }
    }

    fn to_spec(&self) -> SpecValue {
        SpecValue::Float(*self)
    }
}

/// A number for which 0 means that it is absent.
impl SpecField for Option<f64> {
    const FORM: SpecKeyType = f64::FORM;

    fn from_spec(value: &SpecValue) -> Option<Self> {
        f64::from_spec(value).map(|number| Some(number).filter(|number| *number > 0.0))
    }

    fn to_spec(&self) -> SpecValue {
        SpecValue::Float(self.unwrap_or(0.0))
    }
}

impl SpecField for bool {
    const FORM: SpecKeyType = SpecKeyType::Boolean;

    fn from_spec(value: &SpecValue) -> Option<Self> {
        match value {
            SpecValue::Boolean(flag) => Some(*flag),
            _ => None,
        }
    }

    fn to_spec(&self) -> SpecValue {
        SpecValue::Boolean(*self)
    }
}

impl SpecField for String {
    const FORM: SpecKeyType = SpecKeyType::Text;

    fn from_spec(value: &SpecValue) -> Option<Self> {
        match value {
            SpecValue::String(text) => Some(text.clone()),
            _ => None,
        }
    }

    fn to_spec(&self) -> SpecValue {
        SpecValue::String(self.clone())
    }
}

impl SpecField for Vec<String> {
    const FORM: SpecKeyType = SpecKeyType::Texts;

    fn from_spec(value: &SpecValue) -> Option<Self> {
        match value {
            SpecValue::Array(items) => items.iter().map(String::from_spec).collect(),
            _ => None,
        }
    }

    fn to_spec(&self) -> SpecValue {
        SpecValue::Array(self.iter().map(String::to_spec).collect())
    }
}

/// The element type of partial sums.
impl SpecField for DType {
    const FORM: SpecKeyType = SpecKeyType::OneOf(&["float32", "float16"]);

    fn from_spec(value: &SpecValue) -> Option<Self> {
        match value {
            SpecValue::String(word) if word == "float32" => Some(Self::Float),
            SpecValue::String(word) if word == "float16" => Some(Self::Half),
            _ => None,
        }
    }

    fn to_spec(&self) -> SpecValue {
        SpecValue::String(self.name().to_string())
    }
}

/// Declares an enum and the words for its items in a spec. A word of an earlier version follows
/// `|`: it is still accepted, with a warning.
macro_rules! spec_words {
    ($(#[doc = $doc:literal])* $vis:vis enum $name:ident {
        $($(#[doc = $item_doc:literal])* $item:ident = $word:literal $(| $old:literal)*,)+
    }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(unreachable_pub, reason = "of the words of a spec, most are options of it")]
        $vis enum $name {
            $($(#[doc = $item_doc])* $item,)+
        }

        impl $crate::spec_keys::SpecField for $name {
            const FORM: $crate::spec_keys::SpecKeyType = $crate::spec_keys::SpecKeyType::OneOf(&[$($word),+]);
            const RENAMED: &'static [$crate::spec_keys::Renamed] =
                &[$($($crate::spec_keys::Renamed { old: $old, new: $word },)*)+];

            fn from_spec(value: &$crate::spec_keys::SpecValue) -> Option<Self> {
                match value {
                    $($crate::spec_keys::SpecValue::String(word) if word == $word => Some(Self::$item),)+
                    _ => None,
                }
            }

            fn to_spec(&self) -> $crate::spec_keys::SpecValue {
                let word = match self {
                    $(Self::$item => $word,)+
                };
                $crate::spec_keys::SpecValue::String(word.to_string())
            }
        }
    };
}

/// Declares a table of a spec, with one entry per key.
///
/// ```text
/// /// Its meaning: documentation of the field, and the text that users read.
/// field as "key": Type = default, in Form::Integer(1, 8), written "0.1e1" => {
///     shows_in: "Execution trace", poptorch: "poptorch.Options.x",
/// }
/// ```
///
/// The key has the name of the field unless `as` overrides it, the accepted values of its type
/// unless `in` overrides them, and its default in TOML unless `written` overrides it. The braces
/// contain methods of [`KeyNotes`]. The entries are followed by inner `tables`, and by fields
/// `derived` from those above.
macro_rules! spec_table {
    (
        $(#[doc = $doc:literal])*
        #[derive($($derive:ident),+)]
        $vis:vis struct $name:ident {
            $(
                $(#[doc = $about:literal])+
                $field:ident $(as $key:literal)? : $ty:ty = $default:expr
                    $(, in $form:expr)? $(, written $written:literal)?
                    => { $($note:ident : $text:expr),* $(,)? }
            )*
            $(tables {
                $(
                    $(#[doc = $inner_doc:literal])+
                    $inner:ident : $inner_ty:ty = $inner_name:literal
                        { $($place:ident : $word:literal),* $(,)? }
                )+
            })?
            $(derived {
                $(
                    $(#[doc = $derived_doc:literal])+
                    $derived:ident : $derived_ty:ty = $value:expr,
                )+
            })?
        }
    ) => {
        $(#[doc = $doc])*
        #[derive($($derive),+)]
        $vis struct $name {
            $($(#[doc = $about])+ pub $field: $ty,)*
            $($($(#[doc = $inner_doc])+ pub $inner: $inner_ty,)+)?
            $($($(#[doc = $derived_doc])+ pub $derived: $derived_ty,)+)?
        }

        impl Default for $name {
            fn default() -> Self {
                $(let $field: $ty = $default;)*
                $($(let $inner = <$inner_ty>::default();)+)?
                Self {
                    $($($derived: $value,)+)?
                    $($field,)*
                    $($($inner,)+)?
                }
            }
        }

        impl $crate::spec_keys::SpecTable for $name {
            fn declare(
                place: &$crate::spec_keys::TablePlace,
                keys: &mut Vec<$crate::spec_keys::SpecKey>,
            ) {
                $(keys.push(place.key::<$ty>(
                    spec_table!(@key $field $($key)?),
                    spec_table!(@form $ty $(, $form)?),
                    spec_table!(@written $ty, $default $(, $written)?),
                    concat!($($about),+),
                    $crate::spec_keys::KeyNotes::default()$(.$note($text))*,
                ));)*
                $($(<$inner_ty as $crate::spec_keys::SpecTable>::declare(
                    &$crate::spec_keys::TablePlace {
                        prefix: &$crate::spec_keys::inner_prefix(place.prefix, $inner_name),
                        words: &[$((stringify!($place), $word)),*],
                    },
                    keys,
                );)+)?
            }

            fn read(prefix: &str, values: &impl $crate::spec_keys::ChosenValues) -> Self {
                $(let $field: $ty =
                    $crate::spec_keys::ChosenValues::field(values, prefix, spec_table!(@key $field $($key)?)).unwrap_or($default);)*
                $($(let $inner = <$inner_ty as $crate::spec_keys::SpecTable>::read(
                    &$crate::spec_keys::inner_prefix(prefix, $inner_name),
                    values,
                );)+)?
                Self {
                    $($($derived: $value,)+)?
                    $($field,)*
                    $($($inner,)+)?
                }
            }
        }
    };
    (@key $field:ident) => { stringify!($field) };
    (@key $field:ident $key:literal) => { $key };
    (@form $ty:ty) => { <$ty as $crate::spec_keys::SpecField>::FORM };
    (@form $ty:ty, $form:expr) => { $form };
    (@written $ty:ty, $default:expr) => {
        $crate::spec_keys::SpecField::to_spec(&{
            let default: $ty = $default;
            default
        })
        .to_string()
    };
    (@written $ty:ty, $default:expr, $written:literal) => { $written.to_string() };
}

use tilescope_report::units::Elements;
pub(crate) use {spec_table, spec_words};
