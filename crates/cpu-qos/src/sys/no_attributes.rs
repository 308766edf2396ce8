//! Systems without Linux' scheduling attributes.
#![forbid(unsafe_code)]

use crate::error::Error;
use crate::linux::Attributes;

pub(crate) fn get_attributes() -> Result<Attributes, Error> {
    Err(Error::Unsupported)
}

pub(crate) fn set_attributes(_attributes: &Attributes) -> Result<(), Error> {
    Err(Error::Unsupported)
}
