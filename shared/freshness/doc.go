// Package freshness tells how current a query's answer is, and lets a client
// wait until the index has seen what it wrote.
//
// It never says more than is known: what is not proven is told as unknown.
package freshness
