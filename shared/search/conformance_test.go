package search_test

import (
	"testing"

	"holdfast/shared/search/indextest"
)

func TestIndexPort(t *testing.T) {
	indextest.Run(t, func(t *testing.T) indextest.Index { return newIndex(t) })
}
