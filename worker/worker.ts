import { runService } from './service/service.ts'

// A process that is only a worker; any number may run. Needs DATABASE_URL, TEMPORAL_ADDRESS and PERDURE_KEYS.
await runService('worker')
