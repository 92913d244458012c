// Package box starts the signalbox binary the way a user does and looks at it from
// outside: its start-up lines, log, metrics, descriptors and the processes below it.
//
// The binary is built once per test run by [Build]. These variables change that:
//
//	SIGNALBOX_BINARY=PATH   test this binary, build nothing
//	SIGNALBOX_E2E_RACE=1    build with the race detector
package box
