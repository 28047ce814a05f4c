// Package sim runs the way of a document, from the table through relay, queue
// and indexer to the index, with repair, waits and changes of indexes beside it,
// inside one deterministic world: the production code is unchanged, the engines
// around it are models in memory, and time is virtual.
//
// # Running it
//
//	go test ./shared/sim                                    200 seeds of 2,000 operations, and everything below
//	go test ./shared/sim -run TestSeeds -sim.seeds=5000     more of them, -sim.first=201 others
//	go test ./shared/sim -run TestSeeds -sim.seed=17 -v     one, with its trace
//
// A seed decides everything: the script of operations, the faults, their rates,
// and how long each call takes. Two runs of a seed give the same trace, event by
// event (TestARunReplays). Where a seed fails, the test says which, shortens its
// script as far as it can, and shows the operations and the end of the trace.
//
// # What is real
//
// The relay, the indexer, the repair with its leases, proofs, comparisons and
// generations, the waits, the projections and the definitions are the production
// code. The store is a model of package store's promises (versions, nonces,
// tombstones, change feed, adoption); the table, the records of the state, the
// stream, the queue and the search engine are models too. Models pass the
// conformance suites of what they stand for (conformance_test.go).
//
// # What goes wrong
//
// Every call may be late, fail, fail although it was applied, be throttled, or
// arrive minutes after it was given up; a process may crash before and after each
// (TestACrashAtEveryPlace tries every single place). Entries of the change feed
// come late and out of order, all of it may stall; stream records, messages and
// answers come twice, late by up to two weeks, or never. The search engine
// restarts and forgets deletes, loses indexes and aliases, is gone for an hour.
// Clocks are off by ten minutes and jump. Other tools write, change and remove
// items. Documents are refused at each level of reduction. Definitions change
// while all of this goes on. Some runs have all kinds of fault, most have a few.
//
// # What must hold
//
//  1. Loads of an id are linearizable, and a write is applied once or not at all.
//  2. When faults end, searches see what the table holds: versions and bodies.
//  3. No version goes down, in the table or in an index, so that no document
//     comes back after its delete.
//  4. What was acknowledged is in the table; what the index refuses is in
//     quarantine with a reason, and nothing else is.
//  5. A wait that is over has what was awaited; what is proven, and what begins
//     to be read, has everything that was written up to its moment. An answer
//     that is not stale misses nothing that it should have, and each has what was
//     written up to the moment that it says is proven, whatever becomes of the
//     index meanwhile.
//  6. A poison document does not keep its neighbours back.
//  7. All of this is so within three hours after the last fault, with a
//     comparison of everything among them, and changes of indexes are complete.
//
// 1, 3, 5 and 6 are checked as things happen, the others at the end.
//
// What is not held against a run: a wait for tokens, or one without a proof to
// begin with, that found everything in an index that was lost before its end;
// what another tool has written over before it was adopted; and writes by a clock
// that is further off than a corrected one can be, as far as proofs go.
//
// # That it can fail
//
// TestPlantedFaultsAreFound plants faults by adapters around the interfaces of
// the production code, one at a time, and demands that each is found within 200
// seeds, by an invariant that it violates; it lists seed and invariant.
package sim
