import { runService } from './service/service.ts'

// API and worker in one process, as the supervisor (worker/start.ts) runs them. They share one connection to
// Temporal, which eager starts need.
await runService('service')
