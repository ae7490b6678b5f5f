//! What a TDS client sends: packets, PRELOGIN, LOGIN7, batches, procedure calls, transactions.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windlass_tds::login::Login;
use windlass_tds::packet::{Assembler, Kind};
use windlass_tds::prelogin::Prelogin;
use windlass_tds::request::{Batch, Rpc, Transaction};

fuzz_target!(|bytes: &[u8]| {
    let mut assembler = Assembler::new(1 << 16);
    let mut input = bytes;
    while let Ok(Some(message)) = assembler.push(&mut input) {
        let payload = &message.payload[..];
        match message.kind {
            Kind::Prelogin => drop(Prelogin::parse(payload)),
            Kind::Login => drop(Login::parse(payload)),
            Kind::Batch => drop(Batch::parse(payload)),
            Kind::Rpc => drop(Rpc::parse(payload)),
            Kind::Transaction => drop(Transaction::parse(payload)),
            Kind::Attention | Kind::Bulk | Kind::Sspi => {}
        }
    }
});
