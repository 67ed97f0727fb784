import { TestWorkflowEnvironment } from '@temporalio/testing'

// A process of its own (worker/binary.ts runs it): the SDK downloads only by starting the server once, and a
// download that hangs can then be ended.
const [downloadDir, version] = process.argv.slice(2)
if (!downloadDir || !version) throw new Error('usage: download.ts <folder> <version>')

const environment = await TestWorkflowEnvironment.createLocal({
  server: { executable: { type: 'cached-download', downloadDir, version } },
})
await environment.teardown()
