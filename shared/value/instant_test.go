package value_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/shared/value"
)

func TestParseInstant(t *testing.T) {
	for text, want := range map[string]time.Time{
		"1996-07-04T00:00:00Z":                time.Date(1996, 7, 4, 0, 0, 0, 0, time.UTC),
		"1996-07-04T23:59:59.5Z":              time.Date(1996, 7, 4, 23, 59, 59, 500_000_000, time.UTC),
		"1996-07-04T00:00:00.123456789Z":      time.Date(1996, 7, 4, 0, 0, 0, 123_456_789, time.UTC),
		"1996-07-04T00:00:00.000000000Z":      time.Date(1996, 7, 4, 0, 0, 0, 0, time.UTC),
		"1996-07-04T02:00:00+02:00":           time.Date(1996, 7, 4, 0, 0, 0, 0, time.UTC),
		"1996-07-03T18:30:00.25-05:30":        time.Date(1996, 7, 4, 0, 0, 0, 250_000_000, time.UTC),
		"1996-07-04T00:00:00-00:00":           time.Date(1996, 7, 4, 0, 0, 0, 0, time.UTC),
		"1996-07-04T23:59:00+23:59":           time.Date(1996, 7, 4, 0, 0, 0, 0, time.UTC),
		"2000-02-29T00:00:00Z":                time.Date(2000, 2, 29, 0, 0, 0, 0, time.UTC),
		"0000-01-01T00:00:00Z":                time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC),
		"9999-12-31T23:59:59.999999999-23:59": time.Date(10000, 1, 1, 23, 58, 59, 999_999_999, time.UTC),
	} {
		got, ok := value.ParseInstant(text)
		if !ok || !got.Equal(want) || got.Location() != time.UTC {
			t.Errorf("%s = %v, %v; want %v", text, got, ok, want)
		}
	}
}

func TestParseInstantIsStrict(t *testing.T) {
	for _, text := range []string{
		"", "1996", "1996-07-04", "1996-07-04T00:00:00", "1996-07-04T00:00Z", "1996-07-04 00:00:00Z", "1996-07-04t00:00:00Z", "1996-07-04T00:00:00z",
		"1996-07-04T00:00:60Z", "1996-12-31T23:59:60Z", "1996-07-04T24:00:00Z", "1996-07-04T00:60:00Z",
		"1996-13-01T00:00:00Z", "1996-00-01T00:00:00Z", "1996-07-00T00:00:00Z", "1996-07-32T00:00:00Z", "1996-06-31T00:00:00Z", "1999-02-29T00:00:00Z", "1900-02-29T00:00:00Z",
		"1996-07-04T00:00:00.Z", "1996-07-04T00:00:00,5Z", "1996-07-04T00:00:00.1234567891Z", "1996-07-04T00:00:00.5", "1996-07-04T00:00:00.",
		"1996-07-04T00:00:00+0200", "1996-07-04T00:00:00+02", "1996-07-04T00:00:00+24:00", "1996-07-04T00:00:00+02:60", "1996-07-04T00:00:00+2:00", "1996-07-04T00:00:00 02:00",
		" 1996-07-04T00:00:00Z", "1996-07-04T00:00:00Z ", "96-07-04T00:00:00Z", "+1996-07-04T00:00:00Z", "-996-07-04T00:00:00Z", "1996-7-4T00:00:00Z", "1996-07-04T00:00:00ZZ", "1996-07-04T00:00:0xZ",
		"1996/07/04T00:00:00Z", "١٩٩٦-07-04T00:00:00Z",
	} {
		if got, ok := value.ParseInstant(text); ok {
			t.Errorf("%q = %v", text, got)
		}
	}
}

func TestParseInstantReadsWhatTimeFormats(t *testing.T) {
	first, last := time.Date(0, 1, 2, 0, 0, 0, 0, time.UTC).Unix(), time.Date(9999, 12, 30, 0, 0, 0, 0, time.UTC).Unix()
	rapid.Check(t, func(t *rapid.T) {
		zone := time.FixedZone("", rapid.IntRange(-23*60, 23*60).Draw(t, "zone")*60)
		want := time.Unix(rapid.Int64Range(first, last).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")).In(zone)
		text := want.Format(time.RFC3339Nano)
		got, ok := value.ParseInstant(text)
		if !ok || !got.Equal(want) {
			t.Fatalf("%s = %v, %v", text, got, ok)
		}
	})
}
