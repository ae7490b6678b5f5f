//! What the codecs promise, tried from outside.

mod contents;
mod hostile;
mod independent;
mod round_trip;
mod sql_server;
