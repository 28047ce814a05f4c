// Package repair makes the index converge to the table and proves that it has.
//
// A run, every minute and under a lease, does what there is to do in this order:
//
//   - generations: indexes that are lost, wrong or outdated are built anew beside
//     the old ones and take their place when they are proven (generations.go,
//     moves.go);
//   - prove: the change feed since the last proof is held against the index
//     (prove.go); what has been missing for a while is signalled again
//     (resignal.go);
//   - compare: a pass over the whole table and the whole index, in pieces, where
//     nothing is proven yet, and daily (pass.go, walk.go, recheck.go). It finds
//     what the feed cannot show: an index that lost documents, items of other
//     tools, documents that are in the index only, markers whose tombstones are
//     gone, collections that nobody has registered;
//   - quarantine: what the index could not take is tried again (quarantine.go).
//
// A proof names the index that it is about, which was looked at before and after
// what it says was found there. One that is lost, or made again by whomever, takes
// its proof with it at that moment; the next run finds out and fills it anew.
//
// What the index fails at is asked again where that may help (patient.go).
//
// Everything it writes is either conditional on the lease's fencing token, a
// compare-and-set, bound to a version, or a signal, which does no harm at any
// time. So a run may be cut anywhere, and two may overlap.
package repair
