import { TestWorkflowEnvironment } from '@temporalio/testing'

// Run by worker/local/binary.ts as a process of its own, so that a download that hangs can be ended. The SDK
// can download the CLI only by starting its server once.
const [downloadDir, version] = process.argv.slice(2)
if (!downloadDir || !version) throw new Error('usage: binarydownload.ts <folder> <version>')

const environment = await TestWorkflowEnvironment.createLocal({
  server: { executable: { type: 'cached-download', downloadDir, version } },
})
await environment.teardown()
