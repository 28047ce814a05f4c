// Package sim runs the way of a document, from the table through relay, queue
// and indexer to the index, with repair beside it, inside one deterministic
// world: the production code is unchanged, the engines around it are models in
// memory, and time is virtual.
package sim
