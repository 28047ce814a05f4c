// Package pipeline carries the news of changed documents from the table to the
// index.
//
// The relay reads the table's stream and puts signals on a queue. The indexer
// takes signals from the queue, reads the documents again from the table and
// writes them to the index. A signal is an id and a version, never a body, so
// repeated, late and reordered messages do no harm.
//
// Neither of them drops anything: what cannot be done now goes back to where it
// came from, and what cannot be done at all is recorded where it is looked for.
package pipeline
