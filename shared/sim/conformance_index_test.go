package sim_test

import (
	"testing"

	"holdfast/shared/search/indextest"
	"holdfast/shared/sim"
)

func TestIndexModel(t *testing.T) {
	indextest.Run(t, func(t *testing.T) indextest.Index { return sim.NewWorld(1, nil).IndexPort() })
}
