import { runService } from './service.ts'

// A worker alone, for any number of processes; needs DATABASE_URL, TEMPORAL_ADDRESS and PERDURE_KEYS.
await runService('worker')
