import { runService } from './service/service.ts'

// A process that is only the API; any number may run, beside workers.
// Needs DATABASE_URL, TEMPORAL_ADDRESS and PERDURE_KEYS.
await runService('api')
