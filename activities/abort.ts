/**
 * The result of the work. Rejects as soon as one of the signals is aborted, with its reason, also when the work itself
 * does not heed it; such work is left behind, and what becomes of it is ignored.
 */
export async function unlessAborted<T>(work: Promise<T>, ...signals: AbortSignal[]): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const watched = signals.map((signal) => ({ signal, stop: () => reject(signal.reason) }))
  for (const { signal, stop } of watched) {
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  }
  try {
    return await Promise.race([work, aborted])
  } finally {
    // Signals may live far longer than the work.
    for (const { signal, stop } of watched) signal.removeEventListener('abort', stop)
  }
}
