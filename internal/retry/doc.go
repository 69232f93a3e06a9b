// Package retry decides whether a failed or refused attempt is made again, and when. It
// is what httpretry and grpcretry have in common: Decide and the budget are pure, Table
// keeps a budget per host, Pause waits.
//
// Every field of Rules and Budget has a default at 0, see Complete.
package retry
