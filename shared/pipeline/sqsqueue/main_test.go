package sqsqueue_test

import (
	"testing"

	"holdfast/shared/local/enginetest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }
