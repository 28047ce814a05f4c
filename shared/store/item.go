package store

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/doc"
)

// Attributes of an item of the documents table.
const (
	attrPK         = "pk"         // S: the id's root
	attrSK         = "sk"         // S: the rest of the id, "/" for the root document
	attrCollection = "collection" // S
	attrVersion    = "version"    // N: microseconds since 1970, as a hybrid logical clock
	attrNonce      = "nonce"      // S: made up for each write; tells one's own write from another's
	attrCreatedAt  = "createdAt"  // N: microseconds; none on a tombstone
	attrUpdatedAt  = "updatedAt"  // N: microseconds
	attrData       = "data"       // M: the document; none on a tombstone
	attrDeleted    = "deleted"    // BOOL: true on a tombstone, else missing
	attrExpiresAt  = "expiresAt"  // N: microseconds; the document's logical end, if it has one
	attrTTL        = "ttl"        // N: seconds, as DynamoDB demands; when the item may be removed for good
	attrBucket     = "bucket"     // N: partition of the change feed
)

// unversioned is the version as which a live item without a usable version is
// read. Another tool wrote it; adopting it gives it a real one. It is below
// every version that a clock gives and above zero, which means "no document".
const unversioned doc.Version = 1

// maxVersion is the largest version that JSON numbers keep exactly.
const maxVersion doc.Version = 1<<53 - 1

func itemKey(id doc.ID) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{attrPK: str(id.Root()), attrSK: str(id.Rest())}
}

// itemID reads the id from an item's key. It is an error when another tool wrote
// a key that is no id.
func itemID(item map[string]types.AttributeValue) (doc.ID, error) {
	pk, ok1 := text(item[attrPK])
	sk, ok2 := text(item[attrSK])
	if !ok1 || !ok2 || !strings.HasPrefix(sk, "/") {
		return "", fmt.Errorf("decoding an item: its key is not that of a document")
	}
	id := doc.Join(pk, sk)
	// Ids of the system are valid but for their mark.
	if _, err := doc.ParseID(strings.TrimPrefix(string(id), string(doc.SystemMark))); err != nil || len(id) > doc.MaxIDBytes || id.Root() != pk || id.Rest() != sk {
		return "", fmt.Errorf("decoding an item: its key is not that of a document")
	}
	return id, nil
}

// newNonce makes the mark of one write.
func newNonce() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// bucketOf is the partition of the change feed that an id belongs to.
func bucketOf(id doc.ID, buckets int) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return int(h.Sum64() % uint64(buckets))
}

// DecodeItem reads an item of the documents table, in whatever state another
// tool may have left it: missing or odd system attributes read as not set, sets
// as arrays, binary values as base64 text. It fails for a key that is not that
// of a document.
func DecodeItem(item map[string]types.AttributeValue) (doc.Document, error) {
	id, err := itemID(item)
	if err != nil {
		return doc.Document{}, err
	}
	st := standingOf(item)
	d := doc.Document{
		ID:        id,
		Version:   st.version,
		CreatedAt: micros(item[attrCreatedAt]),
		UpdatedAt: micros(item[attrUpdatedAt]),
		ExpiresAt: st.expiresAt,
		Deleted:   st.deleted,
	}
	if d.Deleted {
		return d, nil
	}
	data, _ := item[attrData].(*types.AttributeValueMemberM)
	if data == nil {
		d.Data = map[string]any{}
		return d, nil
	}
	if d.Data, err = decodeMap(data.Value, 1); err != nil {
		return doc.Document{}, fmt.Errorf("decoding an item: %w", err)
	}
	return d, nil
}

// standing is how an id stands in the table: what conditions are about.
type standing struct {
	exists     bool        // there is an item, be it a tombstone
	version    doc.Version // of the item; unversioned if it has no usable one
	oddVersion string      // the number that stands as the version and is not usable as one
	nonce      string
	created    doc.Version // createdAt as a version; 0: none
	deleted    bool
	expiresAt  time.Time
}

func standingOf(item map[string]types.AttributeValue) standing {
	if len(item) == 0 {
		return standing{}
	}
	st := standing{exists: true, version: unversioned, expiresAt: micros(item[attrExpiresAt])}
	if n, ok := item[attrVersion].(*types.AttributeValueMemberN); ok {
		if v, ok := doc.ParseVersion(n.Value); ok && v < maxVersion {
			st.version = v
		} else {
			st.oddVersion = n.Value
		}
	}
	st.nonce, _ = text(item[attrNonce])
	if n, ok := item[attrCreatedAt].(*types.AttributeValueMemberN); ok {
		st.created, _ = doc.ParseVersion(n.Value)
	}
	if b, ok := item[attrDeleted].(*types.AttributeValueMemberBOOL); ok {
		st.deleted = b.Value
	}
	return st
}

// live is the version of the live document, or 0 if there is none at now.
func (st standing) live(now time.Time) doc.Version {
	if !st.exists || st.deleted || st.expired(now) {
		return 0
	}
	return st.version
}

func (st standing) expired(now time.Time) bool {
	return doc.Document{ExpiresAt: st.expiresAt}.Expired(now)
}

// floor is the version that the next one has to be above.
func (st standing) floor() doc.Version {
	if !st.exists {
		return 0
	}
	return st.version
}

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func num[T ~int | ~int64](n T) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(int64(n), 10)}
}

var trueValue types.AttributeValue = &types.AttributeValueMemberBOOL{Value: true}

func text(v types.AttributeValue) (string, bool) {
	s, ok := v.(*types.AttributeValueMemberS)
	if !ok {
		return "", false
	}
	return s.Value, true
}

// integer reads a whole number; 0 if it is none.
func integer(v types.AttributeValue) int64 {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	i, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil {
		return 0
	}
	return i
}

// micros reads a moment; the zero time if it is none.
func micros(v types.AttributeValue) time.Time {
	us := integer(v)
	if us <= 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}
