// Package store keeps documents in DynamoDB: load, save, delete, prefix load,
// change feed, and going through everything; and, in a second table, what the
// system keeps about itself.
//
// It is the only package that knows the layout of the tables. Its guarantees:
//
//   - Loads are consistent reads. What was saved is loaded, what was deleted is
//     not, and nothing is called absent that was not read.
//   - For one id the version only grows, whatever the clocks of the writers do,
//     and across deletes and re-creations.
//   - A write is applied at most once. A write whose answer was lost is
//     recognised by its nonce; one that cannot be settled is told as
//     doc.OutcomeUnknown.
//   - Of the change feed nothing is missed that was there when its reading
//     began, however much is written meanwhile.
//   - What the holder of a lease writes is refused once a later holder has
//     written, whatever time it is for either.
//
// Requests run without the SDK's retries: a retry hidden inside the SDK would
// turn "applied, but the answer was lost" into "refused".
//
// Errors that a caller can be told are *doc.Error with a kind. Their detail
// never holds the engine's words; those are in the cause.
package store
