import { runService } from './service.ts'

// The API alone, for any number of processes beside workers; needs DATABASE_URL, TEMPORAL_ADDRESS, PERDURE_KEYS.
await runService('api')
