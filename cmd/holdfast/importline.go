package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"holdfast/cmd/holdfast/internal/client"
	"holdfast/shared/doc"
	"holdfast/shared/value"
)

// shape is what lines of an import are.
type shape struct {
	collection string // "": lines are {"id","data"}; else documents that go there
	idField    string // member of the document with the rest of its id; "": the server assigns ids
	insert     bool
}

// assigned reports whether the server assigns the ids.
func (s shape) assigned() bool { return s.collection != "" && s.idField == "" }

// entry is a line on its way. Where refused is not nil it is not sent.
type entry struct {
	line    int64
	id      string // "" where it is not known
	input   []byte // the line as it was read
	cut     bool   // input is only its beginning
	data    []byte // the document
	bulk    []byte // the line of a bulk request
	refused json.RawMessage
}

// refusal is a problem that is found here, in the form in which the server
// tells its own.
func refusal(err error) json.RawMessage {
	var e *doc.Error
	if !errors.As(err, &e) {
		e = doc.Errorf(doc.InvalidRequest, "%s", err)
	}
	members := map[string]any{"type": "/problems/" + string(e.Kind), "title": "Not sent", "detail": e.Detail}
	for name, v := range e.Members {
		members[name] = v
	}
	text, err := json.Marshal(members)
	if err != nil {
		return json.RawMessage(`{"title":"Not sent"}`)
	}
	return text
}

// entryOf makes an entry of a record that is not blank.
func (s shape) entryOf(r record) entry {
	e := entry{line: r.line, input: r.text, cut: r.tooLong}
	if r.tooLong {
		e.refused = refusal(doc.Errorf(doc.RequestTooLarge, "the line has more than %d bytes", mostLine).With("limit", mostLine))
		return e
	}
	var err error
	if s.collection == "" {
		err = s.fromEnvelope(&e)
	} else {
		err = s.fromDocument(&e)
	}
	if err != nil {
		e.refused = refusal(err)
	}
	return e
}

// fromEnvelope reads {"id","data"}. What is inside data is left to the server;
// the members that an export adds to them are passed over.
func (s shape) fromEnvelope(e *entry) error {
	members, err := object(e.input)
	if err != nil {
		return err
	}
	if json.Unmarshal(members["id"], &e.id) != nil || e.id == "" {
		return doc.Errorf(doc.InvalidRequest, `a line is {"id":"users/1","data":{…}}; documents without such a frame are imported with --collection`).With("pointer", "/id")
	}
	if s.insert || strings.ContainsRune(e.id, utf8.RuneError) {
		// The frame is taken off here, so nobody else would see a member that
		// comes twice or half a surrogate pair.
		if _, err := value.Decode(e.input, value.MaxDepth+1); err != nil {
			return err
		}
	}
	extra := false
	for name := range members {
		switch name {
		case "id", "data", "delete":
		case "version", "createdAt", "updatedAt":
			extra = true
		default:
			return doc.Errorf(doc.InvalidRequest, "unknown member; a line has id and data").With("pointer", value.Pointer(name))
		}
	}
	data, hasData := members["data"]
	_, hasDelete := members["delete"]
	switch {
	case hasDelete && (s.insert || extra || hasData):
		return doc.Errorf(doc.InvalidRequest, "a line that deletes has nothing but an id, and --mode insert deletes nothing").With("pointer", "/delete")
	case !hasDelete && !hasData:
		return doc.Errorf(doc.InvalidRequest, "a line has id and data").With("pointer", "/data")
	}
	e.data = data
	e.bulk = e.input
	if extra || bytes.ContainsAny(e.input, "\r\n") {
		e.bulk = bulkLine(e.id, data)
		if hasDelete {
			e.bulk = compact(e.input)
		}
	}
	return nil
}

// fromDocument reads a plain document.
func (s shape) fromDocument(e *entry) error {
	members, err := object(e.input)
	if err != nil {
		return err
	}
	e.data = e.input
	if s.assigned() {
		return nil
	}
	place := value.Pointer(s.idField)
	raw, has := members[s.idField]
	if !has {
		return doc.Errorf(doc.InvalidID, "the document has no member %s to take its id from", s.idField).With("pointer", place)
	}
	key, err := keyOf(raw)
	if err != nil {
		return doc.Errorf(doc.InvalidID, "%s", err).With("pointer", place)
	}
	e.id = s.collection + "/" + key
	if _, err := doc.ParseID(e.id); err != nil {
		return err
	}
	e.bulk = bulkLine(e.id, e.data)
	return nil
}

// keyOf makes the last segment of an id of text or a whole number.
func keyOf(raw json.RawMessage) (string, error) {
	v, err := value.Decode(raw, 1)
	if err != nil {
		return "", errors.New("an id comes from text or a whole number")
	}
	switch v := v.(type) {
	case string:
		if v == "" || strings.Contains(v, "/") {
			return "", errors.New("text that becomes the last segment of an id is not empty and has no /")
		}
		return v, nil
	case json.Number:
		if strings.Trim(string(v), "0123456789") == "" {
			return string(v), nil
		}
	}
	return "", errors.New("an id comes from text or a whole number")
}

// object reads the members of a JSON object. Where encoding/json cannot, the
// strict reader tells why and where.
func object(text []byte) (map[string]json.RawMessage, error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) == nil && members != nil && utf8.Valid(text) {
		return members, nil
	}
	if _, err := value.Decode(text, value.MaxDepth+1); err != nil {
		return nil, err
	}
	return nil, doc.Errorf(doc.NotAnObject, "the line is no JSON object").With("pointer", "")
}

func bulkLine(id string, data []byte) []byte {
	b := make([]byte, 0, len(id)+len(data)+20)
	b = append(b, `{"id":`...)
	b = value.AppendString(b, id)
	b = append(b, `,"data":`...)
	b = append(b, compact(data)...)
	return append(b, '}')
}

// compact puts JSON on one line. Text that is none is left for the server to
// refuse; the line breaks in it are white space to JSON.
func compact(text []byte) []byte {
	if !bytes.ContainsAny(text, "\r\n") {
		return text
	}
	var b bytes.Buffer
	if json.Compact(&b, text) == nil {
		return b.Bytes()
	}
	return bytes.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		return r
	}, text)
}

// rejected is a line of the rejects file.
type rejected struct {
	Line  int64           `json:"line"`
	ID    *string         `json:"id"`
	Error json.RawMessage `json:"error"`
	Input json.RawMessage `json:"input"`
}

// rejectOf makes that line. The input is the line's JSON, so that it can be
// taken out, put right and imported; as text where it is no JSON.
func rejectOf(e entry, problem json.RawMessage) (rejected, error) {
	r := rejected{Line: e.line, Error: problem}
	if e.id != "" {
		r.ID = &e.id
	}
	if !e.cut && json.Valid(e.input) && utf8.Valid(e.input) {
		r.Input = e.input
		return r, nil
	}
	text, err := json.Marshal(string(bytes.ToValidUTF8(e.input, []byte("\ufffd"))))
	if err != nil {
		return r, fmt.Errorf("writing a reject: %w", err)
	}
	r.Input = text
	return r, nil
}

// problemText is a problem as the server told it.
func problemText(p *client.Problem) json.RawMessage {
	members := p.Members
	if len(members) == 0 {
		members = map[string]json.RawMessage{}
		for name, text := range map[string]any{"title": p.Title, "status": p.Status, "detail": p.Detail} {
			raw, err := json.Marshal(text)
			if err == nil {
				members[name] = raw
			}
		}
	}
	text, err := json.Marshal(members)
	if err != nil {
		return json.RawMessage(`{"title":"Refused"}`)
	}
	return text
}

// equalJSON compares two documents as the server does: by value.
func equalJSON(a, b []byte) bool {
	x, errX := value.DecodeDocument(a)
	y, errY := value.DecodeDocument(b)
	return errX == nil && errY == nil && value.Equal(x, y)
}
