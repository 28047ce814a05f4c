// Package sample holds real documents to try things on. README.md beside it
// names their origin.
package sample

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
)

//go:embed northwind.ndjson
var northwind []byte

//go:embed movies.ndjson.gz
var movies []byte

//go:embed flights.ndjson.gz
var flights []byte

// Northwind is 1,051 documents of an order database, as NDJSON lines
// {"id","data"}. The caller must not change the bytes.
func Northwind() []byte { return northwind }

// Movies is 3,201 documents with faults in their data, as NDJSON lines.
func Movies() ([]byte, error) { return unzip("movies", movies) }

// Flights is 20,000 small regular documents, as NDJSON lines.
func Flights() ([]byte, error) { return unzip("flights", flights) }

func unzip(name string, packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("sample %s: %w", name, err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("sample %s: %w", name, err)
	}
	return data, nil
}
