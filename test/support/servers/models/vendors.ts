import { afterEach } from 'vitest'
import type { CredentialType } from '../../../../db/credentials/types.ts'
import { startAnthropic } from './anthropic.ts'
import { startGoogle } from './google.ts'
import { startOpenAi } from './openai.ts'
import type { VendorScript, VendorServer } from './vendor.ts'

export const VENDOR_KEY = 'key-of-the-vendor-42'

const STARTS: Partial<Record<CredentialType, typeof startOpenAi>> = {
  ANTHROPIC: startAnthropic,
  GOOGLE_AI: startGoogle,
}

/** Servers of vendors, which are stopped after each test. Those that a test starts by itself go into `open`. */
export function useVendors() {
  const open: VendorServer[] = []
  afterEach(async () => {
    for (const server of open.splice(0)) await server.stop()
  })
  return {
    open,
    /** A server that speaks the protocol of a credential's type, and the data of such a credential. */
    async startVendor(type: CredentialType, script: VendorScript) {
      const server = await (STARTS[type] ?? startOpenAi)(script)
      open.push(server)
      const address: Record<string, string> =
        type === 'AZURE_OPENAI' ? { endpoint: server.origin } : { baseUrl: server.url }
      return { server, data: { apiKey: VENDOR_KEY, ...address } }
    },
  }
}
