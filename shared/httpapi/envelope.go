package httpapi

import (
	"strconv"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/value"
)

// timeLayout is RFC 3339 in UTC with all six digits of a version.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// appendEnvelope writes a document with what the system knows about it.
func appendEnvelope(dst []byte, d doc.Document) []byte {
	return appendEnvelopeWith(dst, d, d.Data)
}

// appendEnvelopeWith is appendEnvelope with other data, a projection.
func appendEnvelopeWith(dst []byte, d doc.Document, data map[string]any) []byte {
	return append(value.Append(appendFrame(dst, d), data), '}')
}

// appendEnvelopeText is appendEnvelope for data that are JSON text already.
func appendEnvelopeText(dst []byte, d doc.Document, data string) []byte {
	return append(append(appendFrame(dst, d), data...), '}')
}

// envelopeLength is about what an envelope has beside its id and its data.
const envelopeLength = 160

// appendFrame writes an envelope up to where its data begin.
func appendFrame(dst []byte, d doc.Document) []byte {
	dst = appendStanding(dst, d.ID, d.Version)
	dst = append(dst, `,"createdAt":`...)
	dst = appendTime(dst, d.CreatedAt)
	dst = append(dst, `,"updatedAt":`...)
	dst = appendTime(dst, d.UpdatedAt)
	return append(dst, `,"data":`...)
}

// appendWritten writes the answer to a write.
func appendWritten(dst []byte, w doc.Written) []byte {
	return append(appendStanding(dst, w.ID, w.Version), '}')
}

// appendStanding begins an object with an id and its version.
func appendStanding(dst []byte, id doc.ID, v doc.Version) []byte {
	dst = append(dst, `{"id":`...)
	dst = appendText(dst, string(id))
	dst = append(dst, `,"version":`...)
	return appendVersion(dst, v)
}

// appendText writes a JSON string.
func appendText(dst []byte, s string) []byte { return value.Append(dst, s) }

// appendVersion writes a version, or null for none.
func appendVersion(dst []byte, v doc.Version) []byte {
	if v == 0 {
		return append(dst, "null"...)
	}
	return strconv.AppendInt(dst, int64(v), 10)
}

func appendTime(dst []byte, t time.Time) []byte {
	dst = append(dst, '"')
	dst = t.UTC().AppendFormat(dst, timeLayout)
	return append(dst, '"')
}
