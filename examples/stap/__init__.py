"""Space-time adaptive processing: a radar detects slow targets in spite of clutter and jammers.

`scene` makes data cubes of channels x pulses x samples, `processing` turns one into detections; both are
plain NumPy.  `runs` processes many cubes, with NumPy, with dcarray, on several ranks.
``python -m examples.stap`` shows all of it.

References
----------
J. Ward, *Space-Time Adaptive Processing for Airborne Radar*, Technical Report 1015, MIT Lincoln Laboratory,
1994: the model of the scene, and its chapter 4 the processing (element space, post Doppler, adjacent bins).
F. C. Robey and others, *A CFAR adaptive matched filter detector*, IEEE Transactions on Aerospace and
Electronic Systems 28 (1), 1992: the statistic of the test.
"""
