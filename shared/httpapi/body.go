package httpapi

import (
	"errors"
	"slices"
	"strings"

	"holdfast/shared/doc"
	"holdfast/shared/value"
)

// envelopeDepth is how deep a request body may be nested around and inside the
// values it carries. It only keeps the reader from running away: documents and
// filters have lower limits of their own, counted from where they begin.
const envelopeDepth = 1000

// readObject reads a JSON object with known members. A value that is no object
// or has other members is refused with kind malformed.
func readObject(body []byte, malformed doc.Kind, members ...string) (map[string]any, error) {
	v, err := value.Decode(body, envelopeDepth)
	if err != nil {
		return nil, shallow(err, malformed)
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, at(doc.Errorf(malformed, "the body is a JSON object"), "")
	}
	if err := onlyMembers(object, malformed, "", members...); err != nil {
		return nil, err
	}
	return object, nil
}

// onlyMembers refuses an object's members other than the named ones; pointer is
// the place of the object.
func onlyMembers(object map[string]any, malformed doc.Kind, pointer string, members ...string) error {
	var unknown []string
	for name := range object {
		if !slices.Contains(members, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	name := slices.Min(unknown) // the same one each time
	return at(doc.Errorf(malformed, "unknown member; known are %s", strings.Join(members, ", ")), pointer+value.Pointer(name))
}

// shallow says of a body that is nested too deeply what its own kind of refusal
// is. Only a document, the member data of an envelope, has a limit to name, and
// it counts from the document.
func shallow(err error, malformed doc.Kind) error {
	var e *doc.Error
	if !errors.As(err, &e) || e.Kind != doc.DocumentTooDeep {
		return err
	}
	pointer, _ := e.Members["pointer"].(string)
	actual, _ := e.Members["actual"].(int)
	if strings.HasPrefix(pointer, "/data/") {
		return doc.Errorf(doc.DocumentTooDeep, "containers are nested %d deep; at most %d levels are kept", actual-1, value.MaxDepth).
			With("pointer", pointer).With("limit", value.MaxDepth).With("actual", actual-1)
	}
	return at(doc.Errorf(malformed, "the body is nested too deeply"), pointer)
}
