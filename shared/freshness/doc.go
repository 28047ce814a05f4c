// Package freshness tells how current a query's answer is, and lets a client
// wait until the index has seen what it wrote.
//
// It never says more than is known: what is not proven is told as unknown. A proof
// names the very index that it is about, by the UUID that OpenSearch gave it, and
// whoever relies on one looks which index is there: who waits before the change
// feed is read, and who tells about an answer after the search. So it makes no
// difference who lost, made or replaced an index, or when, and nobody who does has
// to say so first. That an answer is not stale depends on a look that begins after
// its search; provenThrough, where nobody waited as of now, on one that is at most
// two seconds old.
package freshness
