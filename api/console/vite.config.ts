import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'

const service = process.env.PERDURE_URL ?? 'http://127.0.0.1:3000'

/** `npm run console` serves the sources with a proxy to a running service; api/consolebuild.ts builds them. */
export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  // The service may stand under a path, so nothing names an absolute address.
  base: './',
  publicDir: false,
  // The service puts another nonce into every answer.
  html: { cspNonce: '__NONCE__' },
  build: {
    assetsDir: 'console',
    // The policy allows no data: addresses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2023',
    reportCompressedSize: false,
    chunkSizeWarningLimit: 2_000,
  },
  // old/ has a page too.
  optimizeDeps: { entries: ['index.html'] },
  server: {
    proxy: {
      // The service refuses cookies from pages of other origins, so the page seems to be its own.
      '/api': { target: service, changeOrigin: true, headers: { origin: new URL(service).origin } },
    },
  },
})
