import { CSPProvider } from '@base-ui/react/csp-provider'
import { QueryClientProvider } from '@tanstack/react-query'
import { createRoot } from 'react-dom/client'
import { Router } from 'wouter'
import './tokens.css'
import './base.css'
import { queries } from './data/client.ts'
import { readNonce } from './data/nonce.ts'
import { useHash } from './kit/address.ts'
import { Notices } from './kit/notices.tsx'
import { ConfirmProvider } from './kit/overlays/confirm.tsx'
import { Session } from './shell/session.tsx'

createRoot(document.getElementById('app')!).render(
  <CSPProvider nonce={readNonce()}>
    <QueryClientProvider client={queries}>
      <Router hook={useHash} searchHook={useHash.searchHook}>
        <ConfirmProvider>
          <Session />
        </ConfirmProvider>
        <Notices />
      </Router>
    </QueryClientProvider>
  </CSPProvider>,
)
