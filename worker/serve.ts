import { runService } from './service.ts'

// API and worker in one process, as the supervisor (worker/start.ts) runs them: one connection, eager starts.
await runService('service')
