//! Power and prices of machines. They affect no cycles or bytes.
//!
//! No figure covers a whole rack: only machines of four IPUs and cards have published figures. The
//! host server that a machine needs is not Graphcore's, so its power is assumed. No source that is
//! still online states hourly cloud prices; the list price of a machine is published.

use super::ConstantUnit::Ratio;
use super::cost_constants;

cost_constants! { RUNNING_COST_CONSTANTS:
    /// Power of an IPU-M2000 with four GC200, typical
    M2000_WATTS = 1_100.0, Ratio("W"), Published {
        source: "Graphcore's specification of the IPU-M2000, as servethehome.com quotes it (Graphcore at MLPerf Training v1.0, July 2021)",
        serves: "energy on mk2 systems",
    }

    /// Power of a Bow-2000 with four Bow, average
    BOW2000_WATTS = 1_250.0, Ratio("W"), Published {
        source: "Graphcore, as eenewseurope.com reports it (Graphcore details power for Bow AI unit, 2022)",
        serves: "energy on bow systems",
    }

    /// Power of a C600 card under typical workloads
    C600_WATTS = 185.0, Ratio("W"), Published {
        source: "C600 data sheet, overview: thermal design power (docs.graphcore.ai/projects/C600-datasheet)",
        serves: "energy on c600 systems",
    }

    /// Power of a host server with two processors and its network card
    HOST_SERVER_WATTS = 900.0, Ratio("W"), Assumed {
        source: "servethehome.com (the same article): current servers of one rack unit and two sockets take 800 to 1,000 W",
        serves: "energy",
    }

    /// List price of an IPU-M2000, without host server
    M2000_USD = 32_450.0, Ratio("USD"), Published {
        source: "Graphcore, as crn.com reports it (Chip Startup Graphcore Takes On Nvidia A100 With New IPU, July 2020)",
        serves: "cost on mk2 systems",
    }

    /// List price of a Bow-2000, without host server: that of an IPU-M2000
    BOW2000_USD = 32_450.0, Ratio("USD"), Published {
        source: "Graphcore, as ee-paper.com reports it (March 2022): the price remains unchanged",
        serves: "cost on bow systems",
    }

    /// Hours over which the price of a machine is spread: three years of continuous use
    MACHINE_LIFETIME_HOURS = 26_280.0, Ratio("hours"), Assumed {
        source: "three years are a usual depreciation period of servers",
        serves: "cost",
    }
}
