package main

// The scenarios, in the order in which they run.
var (
	// promises that were broken once
	promises = []scenario{
		winnerAtSecondEdge, winnerWithTwoKeys, winnerWhileApplied, readersOfNothing, stepOfClock, halfClose, emptied, failover, answersWithAcks,
		deadShard, cutLinks, releaseThenConfirm, wrongTypes, carts, partsOfOrders,
	}
	// what may fail around the gate
	faults = []scenario{redisStalls, clockJumps, edgesDie, reloads, scriptFlush, fullMemory, eviction, slotMigration, queued, queuedInOrder, queueLostTogether, waitlistRun, storeKilled, powerCut}
	// what comes from outside
	buyersAndShops = []scenario{oddShops, buyersLeave, foreignKeys, waitlistStrangers, hoarding, waysPast, chosenAddresses}
	operators      = []scenario{stormOfOperators, waitlistOptions}
	// what is lost, and brought back
	losses = []scenario{redisAndSQL, damaged, totalLoss, ownLedgers}
	// what two versions do together
	upgrades = []scenario{upgraded, goesBack}
)
